#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/support/kd_tree_builds.h"

namespace cumulus::testing {

/// A forest and its queries in a backend's memory.
template <class Backend, class T>
class Asked {
 public:
  Asked(Backend& backend, const std::vector<T>& cloud, const KdTreeShape& shape, const KdTreeOptions& options,
        const std::vector<T>& queries, const std::vector<T>& radii = {})
      : backend_(backend),
        shape_(shape),
        tree_(testing::build(backend, cloud, shape, options).tree),
        points_(backend, tree_.points),
        idx_array_(backend, tree_.idx_array),
        node_data_(backend, tree_.node_data),
        node_bounds_(backend, tree_.node_bounds),
        queries_(backend, queries),
        radii_(backend, radii),
        count_(queries.size() / static_cast<std::size_t>(shape.dimensions)) {}

  struct Nearest {
    std::vector<std::int64_t> indices;
    std::vector<T> distances;
    NeighborReport report;
  };
  Nearest nearest(const NeighborSearch& search, int neighbors) {
    const std::size_t size = count_ * static_cast<std::size_t>(neighbors);
    BackendArray<Backend, std::int64_t> indices(backend_, size);
    BackendArray<Backend, T> distances(backend_, size);
    NeighborReport report;
    const std::size_t scratch_bytes = find_nearest_scratch_bytes<T, kSpace>(shape_, search, neighbors);
    backend_.executor().reserve_scratch(scratch_bytes);
    find_nearest(backend_.executor(),
                 NearestJob<T, kSpace>{forest(search), neighbors, indices.span(), distances.span()}, &report);
    check_scratch(scratch_bytes);
    return {indices.to_host(), distances.to_host(), report};
  }

  struct Lists {
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> indices;
    std::vector<T> distances;
    NeighborListReport report;
  };
  /// Lists in the room that their counts ask for; checks that the two agree.
  Lists within(const NeighborSearch& search) {
    const Counts counted = counts(search);
    if (counted.report.fault != NeighborReport::Fault::kNone) return {{}, {}, {}, {counted.report, 0}};
    std::vector<std::int64_t> offsets = {0};
    std::partial_sum(counted.counts.begin(), counted.counts.end(), std::back_inserter(offsets));
    Lists listed = lists(search, static_cast<std::size_t>(offsets.back()));
    EXPECT_EQ(listed.report.listed, offsets.back());
    EXPECT_TRUE(listed.offsets == offsets);
    return listed;
  }

  struct Counts {
    std::vector<std::int64_t> counts;
    NeighborReport report;
  };
  Counts counts(const NeighborSearch& search) {
    BackendArray<Backend, std::int64_t> found(backend_, count_);
    NeighborReport report;
    const std::size_t scratch_bytes = count_within_scratch_bytes<kSpace>(shape_, search);
    backend_.executor().reserve_scratch(scratch_bytes);
    count_within(backend_.executor(), CountJob<T, kSpace>{forest(search), found.span()}, &report);
    check_scratch(scratch_bytes);
    return {found.to_host(), report};
  }

  struct Sums {
    std::vector<T> sums;
    std::vector<T> distances;          // of the last of the nearest
    std::vector<std::int64_t> counts;  // of those within the radius
    NeighborReport report;
  };
  /// `payload` is [trees, points, channels].
  Sums nearest_sums(const NeighborSearch& search, int neighbors, const std::vector<T>& payload) {
    const BackendArray<Backend, T> rows(backend_, payload);
    BackendArray<Backend, T> sums(backend_, count_ * channels_of(payload));
    BackendArray<Backend, T> distances(backend_, count_);
    NeighborReport report;
    const std::size_t scratch_bytes = sum_nearest_scratch_bytes<T, kSpace>(shape_, search, neighbors);
    backend_.executor().reserve_scratch(scratch_bytes);
    sum_nearest(backend_.executor(),
                NearestSumJob<T, kSpace>{forest(search), neighbors, payload_sums(rows, sums, payload),
                                         distances.span()},
                &report);
    check_scratch(scratch_bytes);
    if (report.fault != NeighborReport::Fault::kNone) return {{}, {}, {}, report};
    return {sums.to_host(), distances.to_host(), {}, report};
  }
  Sums sums_within(const NeighborSearch& search, const std::vector<T>& payload) {
    const BackendArray<Backend, T> rows(backend_, payload);
    BackendArray<Backend, T> sums(backend_, count_ * channels_of(payload));
    BackendArray<Backend, std::int64_t> found(backend_, count_);
    NeighborReport report;
    const std::size_t scratch_bytes = count_within_scratch_bytes<kSpace>(shape_, search);
    backend_.executor().reserve_scratch(scratch_bytes);
    sum_within(backend_.executor(),
               WithinSumJob<T, kSpace>{forest(search), payload_sums(rows, sums, payload), found.span()},
               &report);
    check_scratch(scratch_bytes);
    if (report.fault != NeighborReport::Fault::kNone) return {{}, {}, {}, report};
    return {sums.to_host(), {}, found.to_host(), report};
  }

  Lists lists(const NeighborSearch& search, std::size_t room) {
    BackendArray<Backend, std::int64_t> offsets(backend_, count_ + 1);
    BackendArray<Backend, std::int64_t> indices(backend_, room);
    BackendArray<Backend, T> distances(backend_, room);
    NeighborListReport report;
    const std::size_t scratch_bytes = list_within_scratch_bytes<kSpace>(shape_, search);
    backend_.executor().reserve_scratch(scratch_bytes);
    list_within(backend_.executor(),
                ListJob<T, kSpace>{forest(search), offsets.span(), indices.span(), distances.span()},
                &report);
    check_scratch(scratch_bytes);
    return {offsets.to_host(), indices.to_host(), distances.to_host(), report};
  }

 private:
  static constexpr Space kSpace = Backend::kSpace;

  QueriedForest<T, kSpace> forest(const NeighborSearch& search) const {
    return {
        shape_,
        {points_.const_span(), idx_array_.const_span(), node_data_.const_span(), node_bounds_.const_span()},
        {queries_.const_span(), radii_.const_span()},
        search};
  }
  std::size_t channels_of(const std::vector<T>& payload) const {
    return payload.size() / static_cast<std::size_t>(shape_.all_points());
  }
  PayloadSums<T, kSpace> payload_sums(const BackendArray<Backend, T>& rows, BackendArray<Backend, T>& sums,
                                      const std::vector<T>& payload) const {
    return {rows.const_span(), sums.span(), static_cast<std::int64_t>(channels_of(payload))};
  }
  void check_scratch(std::size_t stated) {
    EXPECT_EQ(backend_.executor().scratch_arena().used_bytes(), stated);
    backend_.executor().synchronize();
  }

  Backend& backend_;
  const KdTreeShape shape_;
  const HostKdTree<T> tree_;
  BackendArray<Backend, T> points_;
  BackendArray<Backend, std::int64_t> idx_array_;
  BackendArray<Backend, KdTreeNode> node_data_;
  BackendArray<Backend, T> node_bounds_;
  BackendArray<Backend, T> queries_;
  BackendArray<Backend, T> radii_;
  const std::size_t count_;
};

template <class T>
std::vector<T> part_of(const std::vector<T>& values, std::int64_t part, std::int64_t parts) {
  const auto size = static_cast<std::int64_t>(values.size()) / parts;
  return {values.begin() + part * size, values.begin() + (part + 1) * size};
}

}  // namespace cumulus::testing

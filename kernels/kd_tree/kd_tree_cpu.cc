#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/cpu/find_nan.h"
#include "kernels/kd_tree/cpu/nodes.h"
#include "kernels/kd_tree/cpu/select.h"
#include "kernels/kd_tree/cpu/subtree.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/math/dimensions.h"
#include "kernels/kd_tree/method.h"

namespace cumulus {
namespace {

using kd_tree::Box;
using kd_tree::box_of;
using kd_tree::Candidate;
using kd_tree::for_chunks;
using kd_tree::Nodes;
using kd_tree::PointRows;
using kd_tree::SubtreeBuilder;

/// Nodes of fewer points are no tasks of their own.
constexpr std::size_t kTaskPoints = 4096;
/// Trees of fewer points are built several in a slice, others in many slices.
constexpr std::int64_t kSlicedPoints = 1 << 16;
/// Nodes of as many points are split one after the other, by all threads.
constexpr std::size_t kWidePoints = std::size_t{1} << 20;
constexpr std::int64_t kGrainPoints = 1 << 15;

/// One tree's build. Level after level, its points and their order go from one copy to the other and back;
/// subtrees of few points are built at once. All ends in the first copy.
template <class T, int D>
class TreeBuilder {
 public:
  using Subtrees = oneapi::tbb::enumerable_thread_specific<std::unique_ptr<SubtreeBuilder<T, D>>>;

  TreeBuilder(CpuExecutor& executor, std::size_t subtree_points, const Nodes<T, D>& nodes,
              const std::array<PointRows<T>, 2>& copies, Subtrees& subtrees)
      : executor_(executor),
        subtree_points_(subtree_points),
        nodes_(nodes),
        copies_(copies),
        subtrees_(subtrees) {}

  /// A node, and in which copy its points are.
  struct Part {
    int level;
    std::size_t node;
    std::size_t begin;
    std::size_t count;
    std::size_t from;
  };
  using OpenSlice = parallel::OpenSlice<Part>;

  /// The tree, whose points are in the second copy.
  Part root() const { return {0, 0, 0, nodes_.points(), 1}; }
  /// The nodes of so many points that a pass over them is more than a part of a slice, in slices each. What
  /// is below them.
  std::vector<Part> build_widest() {
    std::vector<Part> widest = {root()};
    std::vector<Part> others;
    while (!widest.empty()) {
      const Part part = widest.back();
      widest.pop_back();
      if (part.count < kWidePoints) {
        others.push_back(part);
      } else if (const std::optional<Children> children = build_node(part)) {
        widest.insert(widest.end(), {children->left, children->right});
      }
    }
    return others;
  }

  /// All of it without a slice, else as far as the slice goes, and a node at least.
  void build(const Part& part, const OpenSlice* slice) {
    const std::size_t count = part.count;
    if (count <= subtree_points_) return build_subtree(part);
    if (count >= kd_tree::kParallelPoints) executor_.check_interrupt();
    const std::optional<Children> children = build_node(part);
    if (!children.has_value()) return;
    const auto& [left, right] = *children;
    if (slice != nullptr && slice->slice.over()) {
      slice->left.add(left);
      slice->left.add(right);
      return;
    }
    if (count < kTaskPoints) {
      build(left, slice);
      build(right, slice);
      return;
    }
    oneapi::tbb::task_group tasks;
    tasks.run([&] { build(children->left, slice); });
    tasks.run_and_wait([&] { build(children->right, slice); });
  }

 private:
  struct Children {
    Part left;
    Part right;
  };

  /// The node alone. No children: it is a leaf.
  std::optional<Children> build_node(const Part& part) {
    const auto& [level, node, begin, count, from] = part;
    const Box<T, D> box = box_of_node(rows(from, begin).points, count);
    nodes_.store(level, node, begin, count, box);
    if (nodes_.is_last(level)) {
      if (from != 0) copy(rows(from, begin), rows(0, begin), count);
      return std::nullopt;
    }
    const std::size_t left = split(level, box, begin, count, from);
    return Children{{level + 1, 2 * node + 1, begin, left, 1 - from},
                    {level + 1, 2 * node + 2, begin + left, count - left, 1 - from}};
  }

  std::size_t width() const { return nodes_.width(); }
  PointRows<T> rows(std::size_t copy, std::size_t begin) const { return copies_[copy].at(begin, width()); }

  void build_subtree(const Part& part) {
    const auto& [level, node, begin, count, from] = part;
    if (from == 0) copy(rows(0, begin), rows(1, begin), count);
    std::unique_ptr<SubtreeBuilder<T, D>>& builder = subtrees_.local();
    if (builder == nullptr) builder = std::make_unique<SubtreeBuilder<T, D>>();
    builder->build(nodes_, {level, node, begin, count}, rows(1, begin), rows(0, begin));
  }

  void copy(const PointRows<T>& from, const PointRows<T>& to, std::size_t count) const {
    std::copy(from.points, from.points + count * width(), to.points);
    std::copy(from.order, from.order + count, to.order);
  }

  Box<T, D> box_of_node(const T* points, std::size_t count) const {
    if (kd_tree::chunk_count(count) == 1) return box_of(points, count, nodes_.dimensions());
    std::vector<Box<T, D>> boxes(kd_tree::chunk_count(count));
    for_chunks(executor_, count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
      executor_.check_interrupt();
      boxes[chunk] = box_of(points + first * width(), last - first, nodes_.dimensions());
    });
    Box<T, D> box;
    for (const Box<T, D>& part : boxes) box.include(part);
    return box;
  }

  std::size_t count_up_to(T x, const T* points, std::size_t axis, std::size_t count) const {
    std::atomic<std::size_t> up_to = 0;
    for_chunks(executor_, count, [&](std::size_t /*chunk*/, std::size_t first, std::size_t last) {
      std::size_t found = 0;
      for (std::size_t i = first; i < last; ++i) found += points[i * width() + axis] <= x ? 1 : 0;
      up_to += found;
    });
    return up_to;
  }

  /// Moves the node's points to the other copy, its left child's first. How many those are.
  std::size_t split(int level, const Box<T, D>& box, std::size_t begin, std::size_t count, std::size_t from) {
    const PointRows<T> source = rows(from, begin);
    const PointRows<T> target = rows(1 - from, begin);
    const std::size_t axis = nodes_.split_axis(level, box);
    const std::size_t left = nodes_.split_position(
        level, box, axis, count, [&](T x) { return count_up_to(x, source.points, axis, count); });
    if (count == 0) return 0;
    const auto candidate = [points = source.points, axis, width = width()](std::size_t i) {
      return Candidate<T>(points[i * width + axis], i);
    };
    // Until they are written, the target's points are room for candidates, which are no larger.
    auto room = reinterpret_cast<std::uintptr_t>(target.points);
    room = (room + alignof(Candidate<T>) - 1) / alignof(Candidate<T>) * alignof(Candidate<T>);
    auto* memory = reinterpret_cast<Candidate<T>*>(room);
    const Candidate<T> pivot = kd_tree::Selection(executor_, count, memory, candidate).at(left);
    partition(pivot, candidate, source, target, left, count);
    return left;
  }

  /// Stable.
  template <class MakeCandidate>
  void partition(Candidate<T> pivot, const MakeCandidate& candidate, const PointRows<T>& source,
                 const PointRows<T>& target, std::size_t left, std::size_t count) const {
    std::vector<std::size_t> lefts(kd_tree::chunk_count(count));  // then where each chunk's left points go
    if (lefts.size() > 1) {
      for_chunks(executor_, count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
        executor_.check_interrupt();
        std::size_t found = 0;
        for (std::size_t i = first; i < last; ++i) found += candidate(i) < pivot ? 1 : 0;
        lefts[chunk] = found;
      });
      std::size_t before = 0;
      for (std::size_t& chunk : lefts) before += std::exchange(chunk, before);
    }
    for_chunks(executor_, count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
      if (lefts.size() > 1) executor_.check_interrupt();
      std::size_t next_left = lefts[chunk];
      std::size_t next_right = left + first - next_left;
      for (std::size_t i = first; i < last; ++i) {
        // Chosen by masks: a branch would be mispredicted for every other point.
        const std::size_t goes_left = candidate(i) < pivot ? 1 : 0;
        const std::size_t to = next_right ^ ((next_left ^ next_right) & (std::size_t{0} - goes_left));
        next_left += goes_left;
        next_right += 1 - goes_left;
        for (std::size_t axis = 0; axis < width(); ++axis)
          target.points[to * width() + axis] = source.points[i * width() + axis];
        target.order[to] = source.order[i];
      }
    });
  }

  CpuExecutor& executor_;
  const std::size_t subtree_points_;
  const Nodes<T, D>& nodes_;
  const std::array<PointRows<T>, 2> copies_;
  Subtrees& subtrees_;
};

template <class T, int D>
void build_trees(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape,
                 const KdTreeOptions& options, const KdTreeArrays<T, Space::kHost>& tree) {
  const std::int64_t width = shape.dimensions;
  const auto all_points = static_cast<std::size_t>(shape.all_points());
  const std::array<PointRows<T>, 2> copies = {
      PointRows<T>{tree.points.data(), executor.scratch<std::uint32_t>(all_points).data()},
      PointRows<T>{executor.scratch<T>(points.size()).data(),
                   executor.scratch<std::uint32_t>(all_points).data()}};
  const PointRows<T>& first = copies[1];
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    std::copy(points.data() + begin * width, points.data() + end * width, first.points + begin * width);
    for (std::int64_t i = begin; i < end; ++i) first.order[i] = static_cast<std::uint32_t>(i % shape.points);
  });
  const kd_tree::CpuBuildPlan plan = kd_tree::choose_cpu_build(sizeof(T), shape, executor.threads());
  using Builder = TreeBuilder<T, D>;
  typename Builder::Subtrees subtrees;
  const auto with_builder = [&](std::int64_t i, const auto& use) {
    const auto of_tree = [&](const PointRows<T>& copy) {
      return copy.at(static_cast<std::size_t>(i * shape.points), static_cast<std::size_t>(width));
    };
    const Nodes<T, D> nodes(shape, options, tree.node_data.data() + i * shape.nodes(),
                            tree.node_bounds.data() + i * 2 * shape.nodes() * width);
    use(Builder(executor, plan.subtree_points, nodes, {of_tree(copies[0]), of_tree(copies[1])}, subtrees));
  };
  if (shape.points < kSlicedPoints) {
    parallel_ranges(executor, shape.trees, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        executor.check_interrupt();
        with_builder(i, [](Builder builder) { builder.build(builder.root(), nullptr); });
      }
    });
  }
  for (std::int64_t i = 0; shape.points >= kSlicedPoints && i < shape.trees; ++i) {
    with_builder(i, [&](Builder builder) {
      parallel_items(executor, builder.build_widest(),
                     [&](const auto& part, const auto& slice) { builder.build(part, &slice); });
    });
  }
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    std::copy(copies[0].order + begin, copies[0].order + end, tree.idx_array.data() + begin);
  });
}

template <class T>
void build(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape,
           const KdTreeOptions& options, const KdTreeArrays<T, Space::kHost>& tree, KdTreeReport* report) {
  kd_tree::check_build(points, shape, options, tree);
  executor.check_interrupt();
  *report = kd_tree::find_nan(executor, points, shape);
  if (report->point >= 0) return;
  kd_tree::with_dimensions(shape.dimensions, [&]<int D>(kd_tree::Dimensions<D> /*dimensions*/) {
    build_trees<T, D>(executor, points, shape, options, tree);
  });
}

}  // namespace

void build_kd_tree(CpuExecutor& executor, HostSpan<const float> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<float, Space::kHost>& tree,
                   KdTreeReport* report) {
  build(executor, points, shape, options, tree, report);
}
void build_kd_tree(CpuExecutor& executor, HostSpan<const double> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<double, Space::kHost>& tree,
                   KdTreeReport* report) {
  build(executor, points, shape, options, tree, report);
}

void permute_rows(CpuExecutor& executor, const KdTreeShape& shape, HostSpan<const std::int64_t> idx_array,
                  HostSpan<const std::byte> from, std::int64_t row_bytes, HostSpan<std::byte> to) {
  kd_tree::check_rows(shape, idx_array, from, row_bytes, to);
  const auto bytes = static_cast<std::size_t>(row_bytes);
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = idx_array.data()[i];
      std::byte* row = to.data() + i * row_bytes;
      if (index < 0 || index >= shape.points) {
        std::memset(row, 0, bytes);
      } else {
        std::memcpy(row, from.data() + (i / shape.points * shape.points + index) * row_bytes, bytes);
      }
    }
  });
}

}  // namespace cumulus

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/dimensions.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_arithmetic.h"
#include "kernels/kd_tree/kd_tree_check.h"
#include "kernels/kd_tree/kd_tree_scratch.h"
#include "kernels/kd_tree/select_cpu.h"

namespace cumulus {
namespace {

using kd_tree::Candidate;
using kd_tree::for_chunks;

/// Nodes of fewer points are no tasks of their own.
constexpr std::size_t kTaskPoints = 4096;
constexpr std::int64_t kGrainPoints = 1 << 15;

template <class T, int D>
struct Box {
  std::array<T, kd_tree::Dimensions<D>::kMost> lower;
  std::array<T, kd_tree::Dimensions<D>::kMost> upper;

  Box() {
    lower.fill(std::numeric_limits<T>::infinity());
    upper.fill(-std::numeric_limits<T>::infinity());
  }
  void include(std::size_t axis, T low, T high) {
    lower[axis] = low < lower[axis] ? low : lower[axis];
    upper[axis] = high > upper[axis] ? high : upper[axis];
  }
  void include(const Box& other) {
    for (std::size_t axis = 0; axis < lower.size(); ++axis)
      include(axis, other.lower[axis], other.upper[axis]);
  }
};

template <class T, int D>
Box<T, D> box_of(const T* points, std::size_t count, kd_tree::Dimensions<D> dimensions) {
  constexpr std::size_t kAtOnce = 4;  // points, whose coordinates make up whole vectors
  const auto width = static_cast<std::size_t>(dimensions.count());
  std::array<T, kAtOnce * kd_tree::Dimensions<D>::kMost> lower;
  std::array<T, kAtOnce * kd_tree::Dimensions<D>::kMost> upper;
  lower.fill(std::numeric_limits<T>::infinity());
  upper.fill(-std::numeric_limits<T>::infinity());
  std::size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (std::size_t lane = 0; lane < kAtOnce * width; ++lane) {
      const T x = points[i * width + lane];
      lower[lane] = x < lower[lane] ? x : lower[lane];
      upper[lane] = x > upper[lane] ? x : upper[lane];
    }
  }
  Box<T, D> box;
  for (std::size_t lane = 0; lane < kAtOnce * width; ++lane)
    box.include(lane % width, lower[lane], upper[lane]);
  for (; i < count; ++i) {
    for (std::size_t axis = 0; axis < width; ++axis) {
      box.include(axis, points[i * width + axis], points[i * width + axis]);
    }
  }
  return box;
}

/// One tree's build. Level after level, its points and their order go from one copy to the other and back.
template <class T, int D>
class TreeBuilder {
 public:
  struct Copy {
    T* points;
    std::uint32_t* order;
  };

  TreeBuilder(const CpuExecutor& executor, const KdTreeShape& shape, const KdTreeOptions& options,
              const std::array<Copy, 2>& copies, KdTreeNode* nodes, T* bounds)
      : executor_(executor),
        shape_(shape),
        dimensions_(shape.dimensions),
        options_(options),
        copies_(copies),
        nodes_(nodes),
        bounds_(bounds) {}

  /// From the copy that makes the last level end in copies[0].
  static int first_copy(const KdTreeShape& shape) { return (shape.levels - 1) % 2; }

  void build() { build_node(0, 0, 0, static_cast<std::size_t>(shape_.points)); }

 private:
  std::size_t width() const { return static_cast<std::size_t>(dimensions_.count()); }

  void build_node(int level, std::size_t node, std::size_t begin, std::size_t count) {
    const int from = (first_copy(shape_) + level) % 2;
    if (count >= kd_tree::kParallelPoints) executor_.check_interrupt();
    const Box<T, D> box = store_node(level, node, begin, count, copies_[static_cast<std::size_t>(from)]);
    if (level + 1 == shape_.levels) return;
    const std::size_t left = split(level, box, begin, count, from);
    const auto build_left = [=, this] { build_node(level + 1, 2 * node + 1, begin, left); };
    const auto build_right = [=, this] { build_node(level + 1, 2 * node + 2, begin + left, count - left); };
    if (count < kTaskPoints) {
      build_left();
      build_right();
      return;
    }
    oneapi::tbb::task_group tasks;
    tasks.run(build_left);
    tasks.run_and_wait(build_right);
  }

  Box<T, D> store_node(int level, std::size_t node, std::size_t begin, std::size_t count, const Copy& copy) {
    Box<T, D> box;
    if (kd_tree::chunk_count(count) == 1) {
      box = box_of(copy.points + begin * width(), count, dimensions_);
    } else {
      std::vector<Box<T, D>> boxes(kd_tree::chunk_count(count));
      for_chunks(count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
        boxes[chunk] = box_of(copy.points + (begin + first) * width(), last - first, dimensions_);
      });
      for (const Box<T, D>& part : boxes) box.include(part);
    }
    T* lower = bounds_ + node * width();
    T* upper = lower + static_cast<std::size_t>(shape_.nodes()) * width();
    for (std::size_t axis = 0; axis < width(); ++axis) {
      lower[axis] = box.lower[axis] += T{0};  // -0 becomes 0
      upper[axis] = box.upper[axis] += T{0};
    }
    nodes_[node] = {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + count),
                    level + 1 == shape_.levels ? 1 : 0,
                    kd_tree::box_radius(
                        dimensions_.count(), [=](int axis) { return lower[axis]; },
                        [=](int axis) { return upper[axis]; })};
    return box;
  }

  std::size_t split_axis(int level, const Box<T, D>& box) const {
    if (options_.split == KdTreeSplit::kRoundRobin)
      return static_cast<std::size_t>(level % dimensions_.count());
    return static_cast<std::size_t>(kd_tree::widest_axis(
        dimensions_.count(), [&](int axis) { return box.lower[static_cast<std::size_t>(axis)]; },
        [&](int axis) { return box.upper[static_cast<std::size_t>(axis)]; }));
  }

  std::size_t split_position(int level, const Box<T, D>& box, std::size_t axis, const T* points,
                             std::size_t count) const {
    if (options_.split != KdTreeSplit::kMidpoint) return count / 2;
    const T middle = kd_tree::middle(box.lower[axis], box.upper[axis]);
    std::atomic<std::size_t> up_to_middle = 0;
    for_chunks(count, [&](std::size_t /*chunk*/, std::size_t first, std::size_t last) {
      std::size_t found = 0;
      for (std::size_t i = first; i < last; ++i) found += points[i * width() + axis] <= middle ? 1 : 0;
      up_to_middle += found;
    });
    return static_cast<std::size_t>(kd_tree::midpoint_position(
        static_cast<std::int64_t>(count), static_cast<std::int64_t>(up_to_middle.load()),
        kd_tree_capacity(shape_, options_.leaf_size, level + 1)));
  }

  /// Moves the node's points to the other copy, its left child's first. How many those are.
  std::size_t split(int level, const Box<T, D>& box, std::size_t begin, std::size_t count, int from) {
    const Copy& source = copies_[static_cast<std::size_t>(from)];
    const Copy& target = copies_[static_cast<std::size_t>(1 - from)];
    const std::size_t axis = split_axis(level, box);
    const T* points = source.points + begin * width();
    const std::size_t left = split_position(level, box, axis, points, count);
    if (count == 0) return 0;
    const auto candidate = [points, axis, width = width()](std::size_t i) {
      return Candidate<T>(points[i * width + axis], i);
    };
    // Until they are written, the target's points are room for candidates, which are no larger.
    auto room = reinterpret_cast<std::uintptr_t>(target.points + begin * width());
    room = (room + alignof(Candidate<T>) - 1) / alignof(Candidate<T>) * alignof(Candidate<T>);
    auto* memory = reinterpret_cast<Candidate<T>*>(room);
    const Candidate<T> pivot = kd_tree::Selection(count, memory, candidate).at(left);
    partition(pivot, candidate, {source.points + begin * width(), source.order + begin},
              {target.points + begin * width(), target.order + begin}, left, count);
    return left;
  }

  /// Stable.
  template <class MakeCandidate>
  void partition(Candidate<T> pivot, const MakeCandidate& candidate, const Copy& source, const Copy& target,
                 std::size_t left, std::size_t count) const {
    const std::size_t width = this->width();
    std::vector<std::size_t> lefts(kd_tree::chunk_count(count));  // then where each chunk's left points go
    if (lefts.size() > 1) {
      for_chunks(count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
        std::size_t found = 0;
        for (std::size_t i = first; i < last; ++i) found += candidate(i) < pivot ? 1 : 0;
        lefts[chunk] = found;
      });
      std::size_t before = 0;
      for (std::size_t& chunk : lefts) before += std::exchange(chunk, before);
    }
    for_chunks(count, [&](std::size_t chunk, std::size_t first, std::size_t last) {
      std::size_t next_left = lefts[chunk];
      std::size_t next_right = left + first - next_left;
      for (std::size_t i = first; i < last; ++i) {
        const bool goes_left = candidate(i) < pivot;
        const std::size_t to = goes_left ? next_left : next_right;
        next_left += goes_left ? 1 : 0;
        next_right += goes_left ? 0 : 1;
        std::memcpy(target.points + to * width, source.points + i * width, width * sizeof(T));
        target.order[to] = source.order[i];
      }
    });
  }

  const CpuExecutor& executor_;
  const KdTreeShape& shape_;
  const kd_tree::Dimensions<D> dimensions_;
  const KdTreeOptions& options_;
  const std::array<Copy, 2> copies_;
  KdTreeNode* const nodes_;
  T* const bounds_;
};

/// The first NaN's element, or -1.
template <class T>
std::int64_t find_nan(CpuExecutor& executor, HostSpan<const T> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::atomic<std::int64_t> first_nan = count;
  parallel_ranges(executor, count, kGrainPoints, [&](std::int64_t first, std::int64_t end) {
    bool found = false;
    for (std::int64_t i = first; i < end; ++i) found |= std::isnan(values.data()[i]);
    if (!found) return;
    while (!std::isnan(values.data()[first])) ++first;
    std::int64_t known = first_nan;
    while (first < known && !first_nan.compare_exchange_weak(known, first)) {
    }
  });
  return first_nan == count ? -1 : first_nan.load();
}

template <class T, int D>
void build_trees(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape,
                 const KdTreeOptions& options, const KdTreeArrays<T, Space::kHost>& tree) {
  using Builder = TreeBuilder<T, D>;
  const std::int64_t width = shape.dimensions;
  using Copy = typename Builder::Copy;
  const auto all_points = static_cast<std::size_t>(shape.all_points());
  const std::array<Copy, 2> copies = {
      Copy{tree.points.data(), executor.scratch<std::uint32_t>(all_points).data()},
      Copy{executor.scratch<T>(points.size()).data(), executor.scratch<std::uint32_t>(all_points).data()}};
  const Copy& first = copies[static_cast<std::size_t>(Builder::first_copy(shape))];
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    std::copy(points.data() + begin * width, points.data() + end * width, first.points + begin * width);
    for (std::int64_t i = begin; i < end; ++i) first.order[i] = static_cast<std::uint32_t>(i % shape.points);
  });
  parallel_ranges(executor, shape.trees, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto of_tree = [&](const Copy& copy) {
        return Copy{copy.points + i * shape.points * width, copy.order + i * shape.points};
      };
      executor.check_interrupt();
      Builder(executor, shape, options, {of_tree(copies[0]), of_tree(copies[1])},
              tree.node_data.data() + i * shape.nodes(),
              tree.node_bounds.data() + i * 2 * shape.nodes() * width)
          .build();
    }
  });
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    std::copy(copies[0].order + begin, copies[0].order + end, tree.idx_array.data() + begin);
  });
}

template <class T>
void build(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape,
           const KdTreeOptions& options, const KdTreeArrays<T, Space::kHost>& tree, KdTreeReport* report) {
  kd_tree::check_build(points, shape, options, tree);
  *report = KdTreeReport();
  executor.check_interrupt();
  if (const std::int64_t nan = find_nan(executor, points); nan >= 0) {
    const std::int64_t point = nan / shape.dimensions;
    *report = {point / shape.points, point % shape.points, nan % shape.dimensions};
    return;
  }
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

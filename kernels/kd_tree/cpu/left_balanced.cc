#include "kernels/kd_tree/left_balanced.h"

#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/cpu/candidate.h"
#include "kernels/kd_tree/cpu/find_nan.h"
#include "kernels/kd_tree/cpu/long_selection.h"
#include "kernels/kd_tree/left_balanced/places.h"

namespace cumulus {
namespace {

using kd_tree::Candidate;
using kd_tree::LeftBalancedPart;

/// Subtrees of fewer points are no tasks of their own.
constexpr std::int64_t kTaskPoints = 4096;
/// Trees of fewer points are arranged several in a slice, others in many slices, and so are their nodes of as
/// many.
constexpr std::int64_t kSlicedPoints = 1 << 16;
constexpr std::int64_t kGrainPoints = 1 << 15;
constexpr std::int64_t kKeyedAtOnce = 1 << 14;

/// A subtree whose candidates are known and, of a large one, how far its root's selection has come.
template <class T>
struct OpenPart {
  int level = 0;
  LeftBalancedPart nodes;
  std::int64_t keyed = 0;
  std::optional<kd_tree::LongSelection<T>> selection = {};
};

/// One tree's. Its candidates stand in the tree's inorder as far as it is known.
template <class T>
class Arrangement {
 public:
  using Part = OpenPart<T>;
  using OpenSlice = parallel::OpenSlice<Part>;

  Arrangement(const CpuExecutor& executor, const T* cloud, const KdTreeShape& shape, Candidate<T>* candidates,
              T* points, std::int64_t* idx_array)
      : executor_(executor),
        cloud_(cloud),
        shape_(shape),
        candidates_(candidates),
        points_(points),
        idx_array_(idx_array) {}

  /// All of it without a slice, else as far as the slice goes, and a part of a node at least.
  void arrange(Part open, const OpenSlice* slice) const {
    const LeftBalancedPart& part = open.nodes;
    if (part.count == 0) return;
    if (part.count >= kTaskPoints) executor_.check_interrupt();
    if (!divide(open, slice)) return slice->left.add(open);
    store(part.node, candidates_[part.root_place()]);
    const Part left{open.level + 1, part.left()};
    const Part right{open.level + 1, part.right()};
    if (part.count < kTaskPoints) {
      arrange(left, slice);
      arrange(right, slice);
      return;
    }
    if (slice != nullptr && slice->slice.over()) {
      slice->left.add(left);
      slice->left.add(right);
      return;
    }
    oneapi::tbb::task_group tasks;
    tasks.run([&] { arrange(left, slice); });
    tasks.run_and_wait([&] { arrange(right, slice); });
  }

 private:
  /// Puts the part's root between those that go left and those that go right: of a large part as far as the
  /// slice goes. Whether all is done.
  bool divide(Part& open, const OpenSlice* slice) const {
    const LeftBalancedPart& part = open.nodes;
    const auto axis = static_cast<std::int64_t>(open.level % shape_.dimensions);
    Candidate<T>* const begin = candidates_ + part.begin;
    Candidate<T>* const root = candidates_ + part.root_place();
    Candidate<T>* const end = begin + part.count;
    if (slice == nullptr || part.count < kSlicedPoints) {
      set_keys(begin, end, axis);
      std::nth_element(begin, root, end);
      return true;
    }
    while (open.keyed < part.count) {
      const std::int64_t keyed = std::min(open.keyed + kKeyedAtOnce, part.count);
      set_keys(begin + open.keyed, begin + keyed, axis);
      open.keyed = keyed;
      if (slice->slice.over()) return false;
    }
    if (!open.selection.has_value()) open.selection.emplace(begin, root, end);
    return open.selection->run(slice->slice);
  }
  void set_keys(Candidate<T>* begin, Candidate<T>* end, std::int64_t axis) const {
    for (Candidate<T>* i = begin; i < end; ++i) *i = Candidate<T>(point(*i)[axis], i->place());
  }
  const T* point(const Candidate<T>& candidate) const {
    return cloud_ + static_cast<std::int64_t>(candidate.place()) * shape_.dimensions;
  }
  void store(std::int64_t node, const Candidate<T>& candidate) const {
    std::copy_n(point(candidate), shape_.dimensions, points_ + node * shape_.dimensions);
    idx_array_[node] = static_cast<std::int64_t>(candidate.place());
  }

  const CpuExecutor& executor_;
  const T* const cloud_;
  const KdTreeShape& shape_;
  Candidate<T>* const candidates_;
  T* const points_;
  std::int64_t* const idx_array_;
};

template <class T>
void arrange(CpuExecutor& executor, HostSpan<const T> points, const KdTreeShape& shape,
             const LeftBalancedArrays<T, Space::kHost>& arrays, KdTreeReport* report) {
  kd_tree::check_left_balanced(points, shape, arrays);
  *report = kd_tree::find_nan(executor, points, shape);
  if (report->point >= 0) return;
  Candidate<T>* const candidates =
      executor.scratch<Candidate<T>>(static_cast<std::size_t>(shape.all_points())).data();
  parallel_ranges(executor, shape.all_points(), kGrainPoints, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      candidates[i] = Candidate<T>(T{0}, static_cast<std::size_t>(i % shape.points));
  });
  const auto tree = [&](std::int64_t i) {
    const std::int64_t first = i * shape.points;
    return Arrangement<T>(executor, points.data() + first * shape.dimensions, shape, candidates + first,
                          arrays.points.data() + first * shape.dimensions, arrays.idx_array.data() + first);
  };
  const OpenPart<T> whole{0, {0, 0, shape.points}};
  if (shape.points < kSlicedPoints) {
    parallel_ranges(executor, shape.trees, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        executor.check_interrupt();
        tree(i).arrange(whole, nullptr);
      }
    });
    return;
  }
  for (std::int64_t i = 0; i < shape.trees; ++i) {
    parallel_items(
        executor, std::vector{whole},
        [arrangement = tree(i)](const auto& part, const auto& slice) { arrangement.arrange(part, &slice); });
  }
}

}  // namespace

void arrange_left_balanced(CpuExecutor& executor, HostSpan<const float> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<float, Space::kHost>& arrays, KdTreeReport* report) {
  arrange(executor, points, shape, arrays, report);
}
void arrange_left_balanced(CpuExecutor& executor, HostSpan<const double> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<double, Space::kHost>& arrays, KdTreeReport* report) {
  arrange(executor, points, shape, arrays, report);
}

}  // namespace cumulus

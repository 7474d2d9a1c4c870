#include "kernels/kd_tree/left_balanced.h"

#include <oneapi/tbb/task_group.h>

#include <algorithm>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/cpu/candidate.h"
#include "kernels/kd_tree/cpu/find_nan.h"
#include "kernels/kd_tree/left_balanced/places.h"

namespace cumulus {
namespace {

using kd_tree::Candidate;
using kd_tree::LeftBalancedPart;

/// Subtrees of fewer points are no tasks of their own.
constexpr std::int64_t kTaskPoints = 4096;

/// One tree's. Its candidates stand in the tree's inorder as far as it is known.
template <class T>
class Arrangement {
 public:
  Arrangement(const CpuExecutor& executor, const T* cloud, const KdTreeShape& shape, Candidate<T>* candidates,
              T* points, std::int64_t* idx_array)
      : executor_(executor),
        cloud_(cloud),
        shape_(shape),
        candidates_(candidates),
        points_(points),
        idx_array_(idx_array) {}

  void arrange() {
    for (std::int64_t i = 0; i < shape_.points; ++i)
      candidates_[i] = Candidate<T>(T{0}, static_cast<std::size_t>(i));
    arrange_part(0, {0, 0, shape_.points});
  }

 private:
  void arrange_part(int level, const LeftBalancedPart& part) {
    if (part.count == 0) return;
    if (part.count >= kTaskPoints) executor_.check_interrupt();
    const int axis = level % shape_.dimensions;
    Candidate<T>* const begin = candidates_ + part.begin;
    Candidate<T>* const root = candidates_ + part.root_place();
    for (Candidate<T>* i = begin; i < begin + part.count; ++i) *i = Candidate<T>(point(*i)[axis], i->place());
    std::nth_element(begin, root, begin + part.count);
    store(part.node, *root);
    if (part.count < kTaskPoints) {
      arrange_part(level + 1, part.left());
      arrange_part(level + 1, part.right());
      return;
    }
    oneapi::tbb::task_group tasks;
    tasks.run([=, this] { arrange_part(level + 1, part.left()); });
    tasks.run_and_wait([=, this] { arrange_part(level + 1, part.right()); });
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
  parallel_ranges(executor, shape.trees, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i * shape.points;
      executor.check_interrupt();
      Arrangement<T>(executor, points.data() + first * shape.dimensions, shape, candidates + first,
                     arrays.points.data() + first * shape.dimensions, arrays.idx_array.data() + first)
          .arrange();
    }
  });
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

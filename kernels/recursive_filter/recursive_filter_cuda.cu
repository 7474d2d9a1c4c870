#include <type_traits>

#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/exact_strips/exact_strips.h"
#include "kernels/recursive_filter/lines/lines.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tiled/tiled.h"
#include "kernels/recursive_filter/windows/windows.h"

namespace cumulus {

using namespace recursive_filter;

template <class T>
RecursiveFilterRun apply_recursive_filter(CudaExecutor& executor,
                                          FilterImages<const T, Space::kDevice> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kDevice> filtered,
                                          const RecursiveFilterChoice& choice) {
  using Method = RecursiveFilterMethod;
  constexpr bool kDoubles = std::is_same_v<T, double>;
  check_views(images, filtered);
  const auto kept_plan =
      require_plan_on_gpu(filter, images.first.height, images.first.width, kDoubles, choice);
  const RecursiveFilterPlan& plan = *kept_plan;
  executor.check_interrupt();
  executor.bind_thread();
  if constexpr (!kDoubles) {
    if (plan.method == Method::kDecaying) {
      filter_in_strips(executor, images, plan, filtered);
      return {Method::kDecaying, plan.windows->of_strips->truncation_bound};
    }
    if constexpr (std::is_same_v<T, float>) {
      if (plan.exact_strips != nullptr && tma_serves(images)) {
        filter_in_exact_strips(executor, images, *plan.exact_strips, filtered);
        return {Method::kTiled};
      }
    }
    if (plan.method == Method::kOnChip) {
      return plan.precision == Precision::kSingle
                 ? filter_by_windows<float>(executor, images, plan, choice.method, filtered)
                 : filter_by_windows<double>(executor, images, plan, choice.method, filtered);
    }
    if (plan.method == Method::kTiled) {
      filter_in_tiles(executor, images, plan, filtered);
      return {Method::kTiled};
    }
  }
  filter_in_lines(executor, images, plan, filtered);
  return {Method::kLines};
}

#define CUMULUS_INSTANTIATE(T)                                                      \
  template RecursiveFilterRun apply_recursive_filter<T>(                            \
      CudaExecutor&, FilterImages<const T, Space::kDevice>, const RecursiveFilter&, \
      FilterImages<T, Space::kDevice>, const RecursiveFilterChoice&);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus

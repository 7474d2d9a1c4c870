#include <type_traits>
#include <variant>

#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/lines/lines.h"
#include "kernels/recursive_filter/on_chip/on_chip.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tiled/tiled.h"

namespace cumulus {

using namespace recursive_filter;

namespace {

using Method = RecursiveFilterMethod;

/// Runs each plan. Images of double have a LinesPlan or a RefusalPlan, and plans that are for floats alone
/// are of no others.
template <class T>
struct Dispatch {
  static constexpr bool kTiles = !std::is_same_v<T, double>;
  static constexpr bool kFloats = std::is_same_v<T, float>;

  CudaExecutor& executor;
  const FilterImages<const T, Space::kDevice>& images;
  const PlannedFilter& filter;
  const FilterImages<T, Space::kDevice>& filtered;

  RecursiveFilterRun operator()(const LinesPlan& /*plan*/) const {
    filter_in_lines(executor, images, filter, filtered);
    return {Method::kLines};
  }
  RecursiveFilterRun operator()(const TiledPlan& /*plan*/) const {
    if constexpr (kTiles) filter_in_tiles(executor, images, filter, filtered);
    return {Method::kTiled};
  }
  RecursiveFilterRun operator()(const OnChipPlan& plan) const {
    if constexpr (kTiles) {
      filter.single() ? filter_in_shared_tiles<float>(executor, images, filter, plan, filtered)
                      : filter_in_shared_tiles<double>(executor, images, filter, plan, filtered);
    }
    return {Method::kOnChip, filter.windows()->truncation_bound};
  }
  RecursiveFilterRun operator()(const RegisterTilesPlan& plan) const {
    if constexpr (kFloats) filter_in_register_tiles(executor, images, filter, plan, filtered);
    return {Method::kOnChip, filter.windows()->truncation_bound};
  }
  RecursiveFilterRun operator()(const StripsPlan& plan) const {
    if constexpr (kTiles) filter_in_strips(executor, images, filter, plan, filtered);
    return {Method::kDecaying, filter.windows()->of_strips->truncation_bound};
  }
  RecursiveFilterRun operator()(const RefusalPlan& plan) const {
    throw DoesNotFitOnChip(plan.tiles, plan.tiles_on_chip);
  }
};

}  // namespace

template <class T>
RecursiveFilterRun apply_recursive_filter(CudaExecutor& executor,
                                          FilterImages<const T, Space::kDevice> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kDevice> filtered,
                                          const RecursiveFilterChoice& choice) {
  check_views(images, filtered);
  const auto planned = planned_filter(filter, images.first.height, images.first.width,
                                      std::is_same_v<T, double>, choice.max_truncation_error);
  const Plan plan = choose(*planned, images_shape(images), choice.method, executor.numbers());
  require_possible(plan, choice);
  executor.check_interrupt();
  executor.bind_thread();
  return std::visit(Dispatch<T>{executor, images, *planned, filtered}, plan);
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

#include "kernels/summed_area_table/method.h"

#include "kernels/core/cuda_executor.h"

namespace cumulus::summed_area_table {
namespace {

constexpr auto kStatusWords = static_cast<std::int64_t>(CudaExecutor::kStatusWords);

/// One inclusive table of the pixels of one channel.
bool is_plain(const BuildShape& shape) {
  return shape.channels == 1 && shape.planes == 1 && !shape.exclusive && !shape.squares && !shape.offsets;
}

/// Whether the device holds all tiles at once, and a block has a thread for each tile above and to the left
/// of its own.
bool fits(const ResidentPlan& plan, ElementPair types, const DeviceNumbers& device) {
  const auto words_of_value = static_cast<std::int64_t>(element_bytes(types.sum) / 4);
  return plan.tiles() <= std::int64_t{kResidentTiles} * device.multiprocessors &&
         plan.tiles() * published_values(plan.tile) * words_of_value <= kStatusWords &&
         (plan.tile_rows - 1) * (plan.tile_columns - 1) <= plan.tile.threads();
}

bool fits(const StripsPlan& plan, const BuildShape& shape, const DeviceNumbers& device) {
  /// Bands have a tag each, and must not use up all there are.
  constexpr std::int64_t kMaxBands = 1 << 24;
  const std::size_t input_bytes = element_bytes(shape.types.image);
  return shape.aligned && plan.blocks() <= device.multiprocessors &&
         plan.strips <= max_lane_strips(plan.form.blocks_per_strip) * kStripsAtOnce &&
         plan.bands <= kMaxBands &&
         shared_bytes(strip_shape(input_bytes, plan.form), input_bytes) <= device.block_shared_bytes;
}

/// Whether strips are faster than look-back.
bool is_worth_strips(const StripsPlan& plan, const BuildShape& shape, const DeviceNumbers& device) {
  /// Below, the way to the first finished band takes too large a part of the time.
  constexpr std::int64_t kMinRows = 1024;
  const int min_busy_percent = element_bytes(shape.types.image) > 1 ? 66 : 75;
  return shape.height >= kMinRows &&
         plan.blocks() * 100 >= std::int64_t{device.multiprocessors} * min_busy_percent;
}

/// The narrowest strips that the device holds all at once.
StripsPlan narrowest_strips(const BuildShape& shape, const DeviceNumbers& device) {
  for (const StripForm& form : kStripForms) {
    const StripsPlan plan = plan_strips(shape, form);
    if (plan.blocks() <= device.multiprocessors) return plan;
  }
  return plan_strips(shape, kStripForms[2]);
}

}  // namespace

Plan choose(const BuildShape& shape, const DeviceNumbers& device) {
  if (!is_plain(shape)) return plan_look_back(shape);
  if (has_resident_tiles(shape.types)) {
    const ResidentPlan low = plan_resident(shape, kLowResidentShape);
    if (fits(low, shape.types, device)) return low;
    // Of as many pixels tall tiles keep fewer multiprocessors busy. Two of sums of 8 bytes do not fit into
    // one's registers.
    const ResidentPlan tall = plan_resident(shape, kTallResidentShape);
    if (element_bytes(shape.types.sum) == 4 && fits(tall, shape.types, device)) return tall;
  }
  if (has_strips(shape.types) && device.architecture >= 90) {
    const StripsPlan strips = narrowest_strips(shape, device);
    if (fits(strips, shape, device) && is_worth_strips(strips, shape, device)) return strips;
  }
  return plan_look_back(shape);
}

}  // namespace cumulus::summed_area_table

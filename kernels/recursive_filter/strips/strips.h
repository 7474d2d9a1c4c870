#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/device_numbers.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/math/truncation.h"
#include "kernels/recursive_filter/tuning.h"

// Truncated windows in one pass (strips/filter.cuh): a block has a strip, which is a column of tiles, or a
// segment of one, and goes down it. All blocks of a launch are resident.

namespace cumulus::recursive_filter {

class PlannedFilter;
struct StripsPlan;

/// Rows and columns of a strip's tiles, in pixels.
constexpr int strip_tile_side(std::int64_t channels) { return channels == 1 ? kTile : kColourTile; }
/// The widest window in such tiles.
template <int Channels>
inline constexpr int kMaxStripWindowTiles = kMaxStripWindow*(kTile / strip_tile_side(Channels));

/// Tiles of so many bytes that a block holds, with the rest of its shared memory.
constexpr int strip_slots(int order, int channels, std::size_t tile_bytes) {
  if (channels == 1) return kStripSlots;
  const std::size_t lines = std::size_t{kColourTile} * static_cast<std::size_t>(channels);
  const auto of_order = static_cast<std::size_t>(order);
  const std::size_t carry_bytes = 2 * 2 * of_order * lines * sizeof(float);
  constexpr std::size_t kTableBytes = sizeof(int) * 2 * kMaxStripWindowTiles<2>;
  constexpr std::size_t kBarrierBytes = std::size_t{kStripStages} * kMaxColourSlots * 8;
  const std::size_t slots = (kStripSharedBytes - carry_bytes - kTableBytes - kBarrierBytes) / tile_bytes;
  return slots < kMaxColourSlots ? static_cast<int>(slots) : kMaxColourSlots;
}

/// Blocks that a GPU holds at once, one on a multiprocessor; 0 where it has too little shared memory for
/// that, or too few multiprocessors for any image, or runs code for compute capabilities before 9.0.
int strip_blocks(const DeviceNumbers& device);

/// Whether strips continue the image as its boundaries do: in a mirror or around the image, where tiles are
/// whole and no pixel is left out.
bool strips_serve(const AxisPlan& y, const AxisPlan& x);

/// An image in tiles of strips, each of all its channels where there are several, or of one channel.
struct StripGrid {
  int rows, columns;
  int window_y, window_x;  // in tiles

  StripGrid(std::int64_t height, std::int64_t width, std::int64_t channels, const Windows::OfStrips& windows);
};

/// How images are divided among launches and blocks: columns of tiles, in panels where they are too
/// many to be resident, then segments of their height, then images.
struct StripDivision {
  int panel_columns;  // stored by one launch
  int segments;
  int segment_tiles;
  std::int64_t images_at_once;
  int state_slots;

  /// A window of tiles on either side of a panel is filtered with it, where the image goes on there.
  /// `repeats`: along x it does everywhere. `blocks`: strip_blocks, not 0.
  StripDivision(const StripGrid& grid, std::int64_t images, bool repeats, int blocks);
};

template <class T>
void filter_in_strips(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                      const PlannedFilter& filter, const StripsPlan& plan,
                      const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/device_numbers.h"
#include "kernels/recursive_filter/fir/gaussian.h"

// How a stage whose rate stays (FirStage) is divided among the blocks of a GPU.

namespace cumulus::recursive_filter {

/// A block goes down so many numbers of each row, in small and in large images, so many rows at a time.
inline constexpr int kDirectFewNumbers = 96;
inline constexpr int kDirectManyNumbers = 192;
inline constexpr int kDirectRows = 16;
/// Results of a thread: along x neighbouring numbers; along y of columns a third of the block's apart.
inline constexpr int kDirectRun = 24;
inline constexpr int kDirectColumns = 3;
constexpr int direct_threads(int numbers) { return numbers / kDirectRun * kDirectRows; }
/// That have registers enough on a multiprocessor.
constexpr int direct_blocks(int numbers) { return 512 / direct_threads(numbers); }
/// Taps that are added to all of them at a time; at most so many times.
inline constexpr int kDirectTaps = 4;
inline constexpr int kDirectMaxChunks = 24;
/// Numbers from row to row of those that are filtered along x: eight rows' vectors in different banks.
constexpr int direct_ring_pitch(int numbers) { return numbers + 4; }

/// Of an axis: `front` taps of weight 0 come first, so that rows begin where vectors do.
struct DirectTaps {
  int front = 0;
  int chunks = 1;

  int taps() const { return kDirectTaps * chunks; }
};
DirectTaps direct_taps_x(const FirPass& pass);
DirectTaps direct_taps_y(const FirPass& pass);

/// Whether a stage neither samples nor interpolates, along both axes, and has not too many taps.
bool is_direct(const FirStage& stage);

struct DirectTile {
  int numbers = kDirectManyNumbers;
  int pitch = 0;      // elements from row to row of the input
  int ring_rows = 0;  // that are filtered along x
  std::int64_t block_rows = 1;
  std::int64_t blocks_x = 1, blocks_y = 1;
  std::size_t shared_bytes = 0;
};
/// For `images` results of `extents`, of elements of `element_bytes` each; nothing where no block of the
/// device has the memory.
std::optional<DirectTile> choose_direct_tile(const FirStage& stage, const FirExtents& extents, int channels,
                                             std::int64_t images, std::size_t element_bytes,
                                             const DeviceNumbers& device);

}  // namespace cumulus::recursive_filter

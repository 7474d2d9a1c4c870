#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/device_numbers.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/tuning.h"

// How many tiles a GPU holds at once. Launch bounds leave each thread as many registers as the blocks of a
// multiprocessor can have (on every GPU that has 65536 of them, which is all that are supported), so that
// shared memory, threads and status words are what can be fewer.

namespace cumulus::recursive_filter {

/// A kernel whose blocks each have a tile.
struct ResidentKernel {
  int threads;
  int blocks;  // of a multiprocessor, by the kernel's launch bounds
  std::size_t shared_bytes;
  std::int64_t words;  // 128-bit status words of a tile
};

/// What a multiprocessor takes of its shared memory for each block, from compute capability 8.0 on.
inline constexpr std::size_t kReservedSharedBytes = 1024;

inline std::int64_t resident_tiles(const ResidentKernel& kernel, const DeviceNumbers& device) {
  if (kernel.shared_bytes > device.block_shared_bytes) return 0;
  const std::size_t reserved = device.architecture >= 80 ? kReservedSharedBytes : 0;
  const auto by_memory =
      static_cast<std::int64_t>(device.multiprocessor_shared_bytes / (kernel.shared_bytes + reserved));
  const std::int64_t by_threads = device.multiprocessor_threads / kernel.threads;
  const std::int64_t blocks = std::min({std::int64_t{kernel.blocks}, by_memory, by_threads});
  return std::min(blocks * device.multiprocessors,
                  static_cast<std::int64_t>(CudaExecutor::kWideStatusWords) / kernel.words);
}

/// The kernel of on_chip/filter.cuh.
constexpr ResidentKernel on_chip_kernel(int order, Precision precision, int parts) {
  const bool single = precision == Precision::kSingle;
  const std::size_t pixels = std::size_t{kTile} * kTilePitch * sizeof(float);
  const std::size_t lines = std::size_t{2} * static_cast<std::size_t>(order) * kTile;
  const std::size_t part_states =
      static_cast<std::size_t>(parts) * lines * (single ? sizeof(float) : sizeof(double));
  return {parts * kTile, single ? on_chip_blocks<float>(order, parts) : on_chip_blocks<double>(order, parts),
          pixels + part_states + lines * sizeof(float), (4 * tagged_words(order) + 1) * kTile};
}

/// The kernel of on_chip/register_tiles.cuh, of tiles of `side` rows and columns.
constexpr ResidentKernel register_tile_kernel(int order, int side, int blocks) {
  const auto pixels = static_cast<std::size_t>(side) * static_cast<std::size_t>(side + 4);
  return {2 * side, blocks, pixels * sizeof(float), (4 * tagged_words(order) + 1) * side};
}

}  // namespace cumulus::recursive_filter

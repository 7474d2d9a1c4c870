#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/device_numbers.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/tuning.h"

// How many tiles a GPU holds at once. Every supported GPU has 65536 registers a multiprocessor, so that the
// blocks of a kernel's launch bounds find theirs; shared memory, threads and status words can be fewer.
// Blocks beyond the launch bounds are not counted on. A test fills a GPU with these.

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
  return {.threads = parts * kTile,
          .blocks = single ? on_chip_blocks<float>(order, parts) : on_chip_blocks<double>(order, parts),
          .shared_bytes = pixels + part_states + lines * sizeof(float),
          .words = (4 * tagged_words(order) + 1) * kTile};
}

/// The kernel of on_chip/register_tiles.cuh.
constexpr ResidentKernel register_tile_kernel(RegisterTiles form, int order) {
  const int side = register_tile_side(form);
  return {.threads = 2 * side,
          .blocks = register_tile_blocks(form),
          .shared_bytes = static_cast<std::size_t>(side) * static_cast<std::size_t>(side + 4) * sizeof(float),
          .words = (4 * tagged_words(order) + 1) * side};
}

}  // namespace cumulus::recursive_filter

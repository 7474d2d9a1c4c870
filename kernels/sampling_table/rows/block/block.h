#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/div.h"
#include "kernels/sampling_table/rows/arguments.h"

// A block a row, or a marginal, whose cells stay in its shared memory from the weights to the guide: of any
// width that fits.

namespace cumulus::sampling_table {

/// Neighbouring cells of a lane, and of a warp, at a time.
inline constexpr std::uint32_t kQuad = 4;
inline constexpr std::uint32_t kChunk = 32 * kQuad;

struct BlockPlan {
  int threads;
  bool guides;  ///< Guides and the nodes of kRadixForest come from shared memory, too.
  std::size_t shared_bytes;

  bool writes_guides() const { return guides; }
};

/// Static shared memory of the kernels, at most.
inline constexpr std::size_t kBlockStaticBytes = 2048;

CUMULUS_HOST_DEVICE constexpr std::uint32_t chunks_of(std::uint32_t count) {
  return divide_up(count, kChunk);
}
CUMULUS_HOST_DEVICE constexpr std::uint32_t quads_of(std::uint32_t count) { return divide_up(count, kQuad); }

/// Dynamic shared memory for the cells alone, and for a slot of each guide cell besides.
constexpr std::size_t block_cell_bytes(std::uint32_t count) {
  return std::size_t{chunks_of(count)} * kChunk * sizeof(std::uint32_t);
}
constexpr std::size_t block_bytes(std::uint32_t count, std::uint32_t guide_size) {
  return block_cell_bytes(count) + std::size_t{quads_of(guide_size)} * kQuad * sizeof(std::uint32_t);
}

template <class T>
void build_rows(CudaExecutor& executor, const BlockPlan& plan, const RowsArguments<T>& arguments);
void build_marginals(CudaExecutor& executor, const BlockPlan& plan, const MarginalsArguments& arguments);

}  // namespace cumulus::sampling_table

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/run_length/params.h"
#include "kernels/run_length/tuning.h"

namespace cumulus::run_length {

/// params.cut_elements, or 0 where it cuts nothing but the array's begin.
constexpr std::int64_t effective_cut(const EncodeRunLengthsParams& params) {
  return params.cut_elements < params.elements ? params.cut_elements : 0;
}

/// What the blocks of the CUDA encoder share: a block for ticket and report, and 16 bytes for each of the
/// most tiles that there are on any device.
constexpr std::size_t encode_shared_bytes(const EncodeRunLengthsParams& params) {
  const std::int64_t min_elements = kMinEncodeWarps * encode_warp_elements(params.format.element_bytes);
  return kBlockAlignment + static_cast<std::size_t>(divide_up(params.elements, min_elements)) * 16;
}

/// How the runs of an array are cut into granules and blocks of them.
struct RunGrid {
  std::int64_t granules;
  std::int64_t blocks;
};

constexpr RunGrid run_grid(std::int64_t runs) {
  return {divide_up(runs, kGranuleRuns), divide_up(runs, kGranuleRuns * kBlockGranules)};
}

constexpr std::int64_t decode_tiles(const DecodeRunLengthsParams& params) {
  return divide_up(params.max_elements, decode_tile_elements(params.format.element_bytes));
}

}  // namespace cumulus::run_length

namespace cumulus {

/// Scratch bytes of encode_run_lengths on executors of space S: exact.
template <Space S>
std::size_t encode_run_lengths_scratch_bytes(const EncodeRunLengthsParams& params) {
  if (S == Space::kHost || params.elements == 0) return 0;
  return ScratchSize().add<std::byte>(run_length::encode_shared_bytes(params)).bytes();
}

/// Scratch bytes of decode_run_lengths on executors of space S: exact.
template <Space S>
std::size_t decode_run_lengths_scratch_bytes(const DecodeRunLengthsParams& params) {
  if (params.runs == 0) return 0;
  if constexpr (S == Space::kHost) {
    const auto granules = divide_up(params.runs, run_length::kCpuGranuleRuns);
    return ScratchSize().add<std::uint64_t>(static_cast<std::size_t>(granules)).bytes();
  } else {
    const run_length::RunGrid grid = run_length::run_grid(params.runs);
    return ScratchSize()
        .add<std::byte>(kBlockAlignment)
        .add<std::uint32_t>(static_cast<std::size_t>(grid.granules) * run_length::kFlagWords)
        .add<std::uint64_t>(static_cast<std::size_t>(grid.granules))
        .add<std::uint64_t>(static_cast<std::size_t>(grid.blocks))
        .add<std::int64_t>(static_cast<std::size_t>(run_length::decode_tiles(params)))
        .bytes();
  }
}

}  // namespace cumulus

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/core/device_numbers.h"
#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/run_length/params.h"
#include "kernels/run_length/tuning.h"

namespace cumulus::run_length {

/// A small array is encoded by one launch of few blocks.
struct EncodeSmallPlan {
  int blocks;
  int rows;  // elements of a thread

  std::size_t scratch_bytes() const;  // a block for the report
};

/// Any other in one pass, by blocks of as many warps as there is shared memory for.
struct EncodeTilesPlan {
  int warps;  // of a block, that have chunks
  std::int64_t tiles;
  std::size_t shared_bytes;  // of a block

  int threads() const { return 32 * (warps + kCarryWarps); }
  /// A block for the report, and a status word for each tile.
  std::size_t status_bytes() const { return static_cast<std::size_t>(tiles) * 16; }
  std::size_t scratch_bytes() const;
};

using EncodePlan = std::variant<EncodeSmallPlan, EncodeTilesPlan>;
EncodePlan choose_encode(const EncodeRunLengthsParams& params, const DeviceNumbers& device);

/// How the runs of an array are cut into granules and blocks of them, and the output into tiles.
struct DecodeGrid {
  std::int64_t granules;
  std::int64_t blocks;
  std::int64_t tiles;
};

/// There is no room for elements: lengths are added up and checked.
struct CheckPlan {
  DecodeGrid grid;
  std::size_t scratch_bytes() const;
};

/// So few blocks that a warp of each tile scans them and finds the tile's runs.
struct FewBlocksPlan {
  DecodeGrid grid;
  std::size_t scratch_bytes() const;
};

/// A kernel scans the blocks; another writes short granules, and finds the runs of the tiles.
struct GranulesPlan {
  DecodeGrid grid;
  bool mostly_short;  // granules, so that few warps look at one in vain
  std::size_t scratch_bytes() const;
};

using DecodePlan = std::variant<CheckPlan, FewBlocksPlan, GranulesPlan>;

/// The same on every GPU.
DecodePlan choose_decode(const DecodeRunLengthsParams& params);

inline const DecodeGrid& grid_of(const DecodePlan& plan) {
  return std::visit([](const auto& of_method) -> const DecodeGrid& { return of_method.grid; }, plan);
}
inline std::size_t scratch_bytes(const EncodePlan& plan) {
  return std::visit([](const auto& of_method) { return of_method.scratch_bytes(); }, plan);
}
inline std::size_t scratch_bytes(const DecodePlan& plan) {
  return std::visit([](const auto& of_method) { return of_method.scratch_bytes(); }, plan);
}

/// params.cut_elements, or 0 where it cuts nothing but the array's begin.
constexpr std::int64_t effective_cut(const EncodeRunLengthsParams& params) {
  return params.cut_elements < params.elements ? params.cut_elements : 0;
}

}  // namespace cumulus::run_length

namespace cumulus {

/// Scratch bytes of encode_run_lengths on executors of space S: exact.
template <Space S>
std::size_t encode_run_lengths_scratch_bytes(const EncodeRunLengthsParams& params,
                                             const DeviceNumbers& device) {
  if (S == Space::kHost || params.elements == 0) return 0;
  return run_length::scratch_bytes(run_length::choose_encode(params, device));
}

/// Scratch bytes of decode_run_lengths on executors of space S: exact.
template <Space S>
std::size_t decode_run_lengths_scratch_bytes(const DecodeRunLengthsParams& params) {
  if (params.runs == 0) return 0;
  if constexpr (S == Space::kHost) {
    const auto granules = divide_up(params.runs, run_length::kCpuGranuleRuns);
    return ScratchSize().add<std::uint64_t>(static_cast<std::size_t>(granules)).bytes();
  } else {
    return run_length::scratch_bytes(run_length::choose_decode(params));
  }
}

}  // namespace cumulus

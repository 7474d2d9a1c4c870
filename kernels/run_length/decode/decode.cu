#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/run_length/decode/decode.h"
#include "kernels/run_length/decode/granule_sums.cuh"
#include "kernels/run_length/decode/short_granules.cuh"
#include "kernels/run_length/decode/tiles.cuh"
#include "kernels/run_length/element.h"

namespace cumulus::run_length {
namespace {

static_assert(sizeof(DecodeRunLengthsReport) < kBlockAlignment);

/// Takes the scratch memory of a call.
DecodeArguments decode_arguments(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                                 DeviceSpan<const std::byte> lengths) {
  const RunGrid grid = run_grid(params.runs);
  DecodeArguments arguments{};
  arguments.lengths = lengths.data();
  arguments.wide_lengths = params.format.length_bytes == 8;
  arguments.ends = params.format.form == RunLengthForm::kEnds;
  arguments.plain = !arguments.wide_lengths && !arguments.ends;
  arguments.runs = params.runs;
  arguments.granules = grid.granules;
  arguments.blocks = grid.blocks;
  arguments.max_elements = params.max_elements;
  arguments.tile_elements = decode_tile_elements(params.format.element_bytes);
  arguments.tiles = decode_tiles(params);
  // Where most granules are short, there is something to write for others than tiles.
  arguments.mostly_short = params.max_elements / (kShortGranuleElements / kGranuleRuns + 1) < params.runs;
  arguments.few_blocks = grid.blocks <= kFewBlocks && arguments.tiles > 0 && !arguments.mostly_short;
  arguments.report =
      reinterpret_cast<DecodeRunLengthsReport*>(executor.scratch<std::byte>(kBlockAlignment).data());
  arguments.all_short = reinterpret_cast<bool*>(arguments.report + 1);
  arguments.flags =
      executor.scratch<std::uint32_t>(static_cast<std::size_t>(grid.granules) * kFlagWords).data();
  arguments.granule_offsets = executor.scratch<std::uint64_t>(static_cast<std::size_t>(grid.granules)).data();
  arguments.block_offsets = executor.scratch<std::uint64_t>(static_cast<std::size_t>(grid.blocks)).data();
  arguments.first_granules = executor.scratch<std::int64_t>(static_cast<std::size_t>(arguments.tiles)).data();
  return arguments;
}

template <class T>
void decode_runs(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                 DeviceSpan<const std::byte> symbols, DeviceSpan<const std::byte> lengths,
                 DeviceSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  DecodeArguments arguments = decode_arguments(executor, params, lengths);
  auto* view = static_cast<DecodeRunLengthsReport*>(executor.device_view(report));
  arguments.caller_report = view != nullptr ? view : arguments.report;
  const auto stream = executor.stream();
  const auto* from = reinterpret_cast<const T*>(symbols.data());
  auto* to = reinterpret_cast<T*>(elements.data());
  launch(stream, sum_granules, {arguments.blocks, 32 * kTileWarps}, arguments);
  if (!arguments.few_blocks)
    launch_dependent<scan_blocks>(stream, {std::int64_t{1}, kScanThreads}, arguments);
  if (!arguments.few_blocks && arguments.tiles > 0) {
    const std::int64_t find_blocks = divide_up(arguments.tiles, 32 * kTileWarps);
    const std::int64_t blocks = divide_up(arguments.granules, kTileWarps) + find_blocks;
    if (arguments.mostly_short) {
      launch_dependent<expand_short_granules<T, false>>(stream, {blocks, 32 * kTileWarps}, arguments, from,
                                                        to);
    } else {
      launch_dependent<expand_short_granules<T, true>>(stream, {blocks, 32 * kTileWarps}, arguments, from,
                                                       to);
    }
  }
  if (arguments.tiles > 0) {
    launch_dependent<expand_tiles<T>>(stream, {arguments.tiles, DecodeTile<T>::kThreads}, arguments, from,
                                      to);
  }
  if (view == nullptr) {
    executor.download({reinterpret_cast<const std::byte*>(arguments.report), sizeof(*report)},
                      {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }
}

}  // namespace

void decode(CudaExecutor& executor, const DecodeRunLengthsParams& params, DeviceSpan<const std::byte> symbols,
            DeviceSpan<const std::byte> lengths, DeviceSpan<std::byte> elements,
            DecodeRunLengthsReport* report) {
  with_element(params.format.element_bytes,
               [&]<class T>(T) { decode_runs<T>(executor, params, symbols, lengths, elements, report); });
}

}  // namespace cumulus::run_length

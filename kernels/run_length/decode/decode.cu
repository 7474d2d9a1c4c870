#include <cuda_runtime.h>

#include <variant>

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
                                 const DecodePlan& plan, DeviceSpan<const std::byte> lengths) {
  const DecodeGrid& grid = grid_of(plan);
  const auto granules = static_cast<std::size_t>(grid.granules);
  const auto* by_granules = std::get_if<GranulesPlan>(&plan);
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
  arguments.tiles = grid.tiles;
  arguments.mostly_short = by_granules != nullptr && by_granules->mostly_short;
  arguments.few_blocks = std::holds_alternative<FewBlocksPlan>(plan);
  arguments.report =
      reinterpret_cast<DecodeRunLengthsReport*>(executor.scratch<std::byte>(kBlockAlignment).data());
  arguments.all_short = reinterpret_cast<bool*>(arguments.report + 1);
  arguments.flags = executor.scratch<std::uint32_t>(granules * kFlagWords).data();
  arguments.granule_offsets = executor.scratch<std::uint64_t>(granules).data();
  arguments.block_offsets = executor.scratch<std::uint64_t>(static_cast<std::size_t>(grid.blocks)).data();
  if (by_granules != nullptr) {
    arguments.first_granules = executor.scratch<std::int64_t>(static_cast<std::size_t>(grid.tiles)).data();
  }
  return arguments;
}

/// Puts a plan's kernels behind sum_granules on the stream.
template <class T>
struct Expand {
  cudaStream_t stream;
  const DecodeArguments& arguments;
  const T* from;
  T* to;

  void operator()(const CheckPlan& /*plan*/) const { scan(); }
  void operator()(const FewBlocksPlan& /*plan*/) const { write_tiles(); }
  void operator()(const GranulesPlan& plan) const {
    scan();
    const std::int64_t find_blocks = divide_up(plan.grid.tiles, 32 * kTileWarps);
    const LaunchShape shape{divide_up(plan.grid.granules, kTileWarps) + find_blocks, 32 * kTileWarps};
    if (plan.mostly_short) {
      launch_dependent<expand_short_granules<T, false>>(stream, shape, arguments, from, to);
    } else {
      launch_dependent<expand_short_granules<T, true>>(stream, shape, arguments, from, to);
    }
    write_tiles();
  }

 private:
  void scan() const { launch_dependent<scan_blocks>(stream, {std::int64_t{1}, kScanThreads}, arguments); }
  void write_tiles() const {
    launch_dependent<expand_tiles<T>>(stream, {arguments.tiles, DecodeTile<T>::kThreads}, arguments, from,
                                      to);
  }
};

template <class T>
void decode_runs(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                 DeviceSpan<const std::byte> symbols, DeviceSpan<const std::byte> lengths,
                 DeviceSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  const DecodePlan plan = choose_decode(params);
  DecodeArguments arguments = decode_arguments(executor, params, plan, lengths);
  auto* view = static_cast<DecodeRunLengthsReport*>(executor.device_view(report));
  arguments.caller_report = view != nullptr ? view : arguments.report;
  launch(executor.stream(), sum_granules, {arguments.blocks, 32 * kTileWarps}, arguments);
  std::visit(Expand<T>{executor.stream(), arguments, reinterpret_cast<const T*>(symbols.data()),
                       reinterpret_cast<T*>(elements.data())},
             plan);
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

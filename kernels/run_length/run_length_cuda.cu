#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/run_length/decode_granule.cuh"
#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/decode_tile.cuh"
#include "kernels/run_length/encode_tile.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_check.h"
#include "kernels/run_length/run_length_element.h"

namespace cumulus {
namespace {

using namespace run_length;

static_assert(sizeof(EncodeShared) <= kBlockAlignment && sizeof(DecodeRunLengthsReport) < kBlockAlignment);

template <class Kernel>
void allow_shared_memory(Kernel kernel, std::size_t bytes) {
  CUMULUS_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

template <class Report>
void download_report(CudaExecutor& executor, const Report* from, Report* to) {
  executor.download({reinterpret_cast<const std::byte*>(from), sizeof(Report)},
                    {reinterpret_cast<std::byte*>(to), sizeof(Report)});
}

/// How the encoder runs on a device.
struct EncodeShape {
  int warps;  // of a block that handle elements
  int threads;
  std::size_t memory_bytes;
  std::int64_t resident_blocks;
};

template <class T>
EncodeShape encode_shape(CudaExecutor& executor) {
  int device = 0;
  int most_bytes = 0;
  CUMULUS_CUDA(cudaGetDevice(&device));
  CUMULUS_CUDA(cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto room = (static_cast<std::size_t>(most_bytes) - sizeof(EncodeMemory)) / sizeof(WarpMemory<T>);
  EncodeShape shape{};
  shape.warps = std::min(kMostEncodeWarps, static_cast<int>(room));
  shape.threads = 32 * (shape.warps + kEncodeServants);
  shape.memory_bytes = encode_memory_bytes<T>(shape.warps);
  allow_shared_memory(encode_tiles<T>, shape.memory_bytes);
  int of_each = 0;
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, encode_tiles<T>, shape.threads,
                                                             shape.memory_bytes));
  shape.resident_blocks = std::int64_t{std::max(of_each, 1)} * executor.device().multiprocessors();
  return shape;
}

template <class T>
void encode(CudaExecutor& executor, const EncodeRunLengthsParams& params,
            DeviceSpan<const std::byte> elements, DeviceSpan<std::byte> symbols,
            DeviceSpan<std::byte> lengths, EncodeRunLengthsReport* report,
            DeviceSpan<std::int64_t> first_runs) {
  const EncodeShape shape = encode_shape<T>(executor);
  const std::int64_t tiles = divide_up(params.elements, shape.warps * WarpMemory<T>::kElements);
  const auto scratch = executor.scratch<std::byte>(encode_shared_bytes(params));
  CUMULUS_CUDA(cudaMemsetAsync(scratch.data(), 0xFF,
                               kBlockAlignment + static_cast<std::size_t>(tiles) * sizeof(Word),
                               executor.stream()));
  auto* shared = reinterpret_cast<EncodeShared*>(scratch.data());
  // Else a run may be too long for its length, which any block may find.
  const bool all_fit = params.format.length_bytes == 8 || params.elements >> 32 == 0;
  auto* view = all_fit ? static_cast<EncodeRunLengthsReport*>(executor.device_view(report)) : nullptr;
  const EncodeArguments<T> arguments{reinterpret_cast<const T*>(elements.data()),
                                     params.elements,
                                     effective_cut(params),
                                     reinterpret_cast<T*>(symbols.data()),
                                     lengths.data(),
                                     params.format.length_bytes == 8,
                                     params.format.form == RunLengthForm::kEnds,
                                     params.max_runs,
                                     first_runs.data(),
                                     params.cut_elements > 0 ? params.cut_elements : params.elements,
                                     tiles,
                                     shared,
                                     view != nullptr ? view : &shared->report,
                                     reinterpret_cast<Word*>(scratch.data() + kBlockAlignment)};
  if (!launch_cooperative(executor, encode_tiles<T>,
                          {std::min(tiles, shape.resident_blocks), shape.threads, shape.memory_bytes},
                          arguments)) {
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
  }
  if (view == nullptr) download_report(executor, &shared->report, report);
}

/// The scratch memory of a call, and what its kernels have in common.
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
void decode(CudaExecutor& executor, const DecodeRunLengthsParams& params, DeviceSpan<const std::byte> symbols,
            DeviceSpan<const std::byte> lengths, DeviceSpan<std::byte> elements,
            DecodeRunLengthsReport* report) {
  DecodeArguments arguments = decode_arguments(executor, params, lengths);
  auto* view = static_cast<DecodeRunLengthsReport*>(executor.device_view(report));
  arguments.told = view != nullptr ? view : arguments.report;
  const auto stream = executor.stream();
  const auto* from = reinterpret_cast<const T*>(symbols.data());
  auto* to = reinterpret_cast<T*>(elements.data());
  sum_granules<<<static_cast<unsigned int>(arguments.blocks), 32 * kTileWarps, 0, stream>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
  if (!arguments.few_blocks) launch_dependent<scan_blocks>(stream, {1, kScanThreads}, arguments);
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
  if (view == nullptr) download_report(executor, arguments.report, report);
}

}  // namespace

void encode_run_lengths(CudaExecutor& executor, const EncodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> elements, DeviceSpan<std::byte> symbols,
                        DeviceSpan<std::byte> lengths, EncodeRunLengthsReport* report,
                        DeviceSpan<std::int64_t> first_runs) {
  check_encode(params, elements, symbols, lengths, first_runs);
  executor.check_interrupt();
  *report = {};
  executor.bind_thread();
  if (params.elements == 0) {
    if (!first_runs.empty()) {
      CUMULUS_CUDA(cudaMemsetAsync(first_runs.data(), 0, first_runs.bytes(), executor.stream()));
    }
    return;
  }
  with_element(params.format.element_bytes, [&]<class T>(T) {
    encode<T>(executor, params, elements, symbols, lengths, report, first_runs);
  });
}

void decode_run_lengths(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> symbols, DeviceSpan<const std::byte> lengths,
                        DeviceSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  check_decode(params, symbols, lengths, elements);
  executor.check_interrupt();
  *report = {};
  if (params.runs == 0) return;
  executor.bind_thread();
  with_element(params.format.element_bytes,
               [&]<class T>(T) { decode<T>(executor, params, symbols, lengths, elements, report); });
}

}  // namespace cumulus

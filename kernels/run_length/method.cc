#include "kernels/run_length/method.h"

#include <algorithm>

namespace cumulus::run_length {
namespace {

int encode_warps(int element_bytes, const DeviceNumbers& device) {
  if (device.block_shared_bytes < kEncodeBlockBytes) return kMinEncodeWarps;
  const std::size_t room = (device.block_shared_bytes - kEncodeBlockBytes) / encode_warp_bytes(element_bytes);
  return static_cast<int>(std::clamp<std::size_t>(room, kMinEncodeWarps, kMaxEncodeWarps));
}

/// How a small array is encoded; `rows` is 0 where it is not small.
EncodeSmallPlan small_plan(std::int64_t elements, int element_bytes, const DeviceNumbers& device) {
  const bool has_clusters = device.architecture >= kClusterArchitecture;
  if (!has_clusters || elements <= kOneBlockElements) {
    const std::int64_t rows = divide_up(elements, std::int64_t{kSmallThreads});
    return {1, rows <= kSmallRows ? static_cast<int>(rows) : 0};
  }
  constexpr std::int64_t kCluster = kSmallBlocks * kSmallThreads;
  const std::int64_t rows = divide_up(elements, kCluster * kSmallClusters);
  if (rows > (element_bytes <= kMaxClusterRowsBytes ? kClusterRows : 1)) return {0, 0};
  return {kSmallBlocks * static_cast<int>(divide_up(elements, kCluster * rows)), static_cast<int>(rows)};
}

/// What every decoder takes: a block for the report, flags and sums.
ScratchSize decode_sums(const DecodeGrid& grid) {
  const auto granules = static_cast<std::size_t>(grid.granules);
  ScratchSize size;
  size.add<std::byte>(kBlockAlignment);
  size.add<std::uint32_t>(granules * kFlagWords);
  size.add<std::uint64_t>(granules);
  size.add<std::uint64_t>(static_cast<std::size_t>(grid.blocks));
  return size;
}

}  // namespace

std::size_t EncodeSmallPlan::scratch_bytes() const {
  return ScratchSize().add<std::byte>(kBlockAlignment).bytes();
}
std::size_t EncodeTilesPlan::scratch_bytes() const {
  return ScratchSize().add<std::byte>(kBlockAlignment + status_bytes()).bytes();
}

std::size_t CheckPlan::scratch_bytes() const { return decode_sums(grid).bytes(); }
std::size_t FewBlocksPlan::scratch_bytes() const { return decode_sums(grid).bytes(); }
std::size_t GranulesPlan::scratch_bytes() const {
  return decode_sums(grid).add<std::int64_t>(static_cast<std::size_t>(grid.tiles)).bytes();
}

EncodePlan choose_encode(const EncodeRunLengthsParams& params, const DeviceNumbers& device) {
  const int element_bytes = params.format.element_bytes;
  const EncodeSmallPlan small = small_plan(params.elements, element_bytes, device);
  if (small.rows > 0) return small;
  const int warps = encode_warps(element_bytes, device);
  const std::int64_t tile_elements = std::int64_t{warps} * encode_warp_elements(element_bytes);
  return EncodeTilesPlan{
      warps, divide_up(params.elements, tile_elements),
      kEncodeBlockBytes + static_cast<std::size_t>(warps) * encode_warp_bytes(element_bytes)};
}

DecodePlan choose_decode(const DecodeRunLengthsParams& params) {
  const DecodeGrid grid{divide_up(params.runs, kGranuleRuns),
                        divide_up(params.runs, kGranuleRuns * kBlockGranules),
                        divide_up(params.max_elements, decode_tile_elements(params.format.element_bytes))};
  if (grid.tiles == 0) return CheckPlan{grid};
  const bool mostly_short = params.max_elements / (kShortGranuleElements / kGranuleRuns + 1) < params.runs;
  if (grid.blocks <= kFewBlocks && !mostly_short) return FewBlocksPlan{grid};
  return GranulesPlan{grid, mostly_short};
}

}  // namespace cumulus::run_length

#include "kernels/run_length/method.h"

#include <algorithm>

namespace cumulus::run_length {
namespace {

int encode_warps(int element_bytes, const DeviceNumbers& device) {
  if (device.block_shared_bytes < kEncodeBlockBytes) return kMinEncodeWarps;
  const std::size_t room = (device.block_shared_bytes - kEncodeBlockBytes) / encode_warp_bytes(element_bytes);
  return static_cast<int>(std::clamp<std::size_t>(room, kMinEncodeWarps, kMaxEncodeWarps));
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
  const int most_blocks = device.architecture >= kClusterArchitecture ? kSmallBlocks : 1;
  if (params.elements <= max_small_elements(most_blocks)) {
    const int blocks = params.elements <= kOneBlockElements ? 1 : most_blocks;
    return EncodeSmallPlan{
        blocks, static_cast<int>(divide_up(params.elements, std::int64_t{blocks} * kSmallThreads))};
  }
  const int element_bytes = params.format.element_bytes;
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

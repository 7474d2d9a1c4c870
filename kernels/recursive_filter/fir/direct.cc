#include "kernels/recursive_filter/fir/direct.h"

#include <algorithm>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

DirectTaps with_front(const FirPass& pass, int front) {
  return {front, static_cast<int>(divide_up(front + pass.taps, std::int64_t{kDirectTaps}))};
}

bool keeps_rate(const FirPass& pass) { return pass.phases == 1 && pass.advance == 1; }

void lay_out(DirectTile& tile, int numbers, int taps_y, int numbers_beside, std::size_t element_bytes) {
  tile.numbers = numbers;
  tile.pitch = numbers + numbers_beside;
  if (tile.pitch % 8 == 0) tile.pitch += 4;  // eight rows' vectors in different banks
  tile.ring_rows = taps_y + kDirectRows;
  const int floats = 2 * kDirectTaps * kDirectMaxChunks + tile.ring_rows * direct_ring_pitch(numbers);
  tile.shared_bytes = static_cast<std::size_t>(floats) * sizeof(float) +
                      static_cast<std::size_t>(kDirectRows * tile.pitch) * element_bytes;
}

/// On a multiprocessor.
int resident_blocks(const DirectTile& tile, const DeviceNumbers& device) {
  if (tile.shared_bytes > device.block_shared_bytes) return 0;
  constexpr std::size_t kReserved = 1024;  // of each block
  const auto by_memory =
      static_cast<int>(device.multiprocessor_shared_bytes / (tile.shared_bytes + kReserved));
  return std::clamp(by_memory, 1, direct_blocks(tile.numbers));
}

/// What so many blocks take of the time of one that shares its multiprocessor with many. `together` that are
/// alone there take as long as twice as many do.
std::int64_t turns(std::int64_t blocks, std::int64_t resident, std::int64_t together,
                   std::int64_t multiprocessors) {
  const std::int64_t waves = blocks / (resident * multiprocessors);
  const std::int64_t rest = divide_up(blocks - waves * resident * multiprocessors, multiprocessors);
  return waves * (resident + together) + (rest > 0 ? rest + together : 0);
}

}  // namespace

DirectTaps direct_taps_x(const FirPass& pass) {
  constexpr std::int64_t kVector = 4;
  return with_front(pass, static_cast<int>((pass.first % kVector + kVector) % kVector));
}

DirectTaps direct_taps_y(const FirPass& pass) { return with_front(pass, 0); }

bool is_direct(const FirStage& stage) {
  return stage.y.has_value() && stage.x.has_value() && keeps_rate(*stage.y) && keeps_rate(*stage.x) &&
         direct_taps_y(*stage.y).chunks <= kDirectMaxChunks &&
         direct_taps_x(*stage.x).chunks <= kDirectMaxChunks;
}

std::optional<DirectTile> choose_direct_tile(const FirStage& stage, const FirExtents& extents, int channels,
                                             std::int64_t images, std::size_t element_bytes,
                                             const DeviceNumbers& device) {
  const int taps_x = direct_taps_x(*stage.x).taps();
  const int taps_y = direct_taps_y(*stage.y).taps();
  std::optional<DirectTile> best;
  std::int64_t least = 0;
  constexpr int kMaxBatches = 34;  // more blocks than one wave's keep all at work to the end
  const int fewest = divide_up(taps_y + kDirectRows, kDirectRows);
  for (const int numbers : {kDirectManyNumbers, kDirectFewNumbers}) {
    DirectTile tile;
    lay_out(tile, numbers, taps_y, taps_x * channels, element_bytes);
    const int resident = resident_blocks(tile, device);
    if (resident == 0) continue;
    tile.blocks_x = divide_up(extents.width * channels, std::int64_t{numbers});
    // A block begins with the rows above its own: few blocks do that seldom, many keep all multiprocessors at
    // work. A number beside the block costs a tenth of one that is filtered.
    for (int batches = fewest; batches <= kMaxBatches; ++batches) {
      tile.block_rows = std::int64_t{batches} * kDirectRows - taps_y;
      tile.blocks_y = divide_up(extents.height, tile.block_rows);
      const std::int64_t blocks = tile.blocks_x * tile.blocks_y * images;
      const std::int64_t time =
          batches * turns(blocks, resident, kDirectManyNumbers / numbers, device.multiprocessors) *
          (10 * numbers + taps_x * channels);
      if (best.has_value() && time >= least) continue;
      least = time;
      best = tile;
    }
  }
  return best;
}

}  // namespace cumulus::recursive_filter

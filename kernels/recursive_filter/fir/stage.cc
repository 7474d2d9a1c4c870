#include "kernels/recursive_filter/fir/stage.h"

#include <algorithm>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

/// Tiles for a stage. What is best was swept on an H100 (docs/experiments/recursive_filter.md): few rows at a
/// time, so that two blocks or more share a multiprocessor and one works while another waits.
class TileChooser {
 public:
  TileChooser(const FirForm& y, const FirForm& x, int channels, std::int64_t images, std::size_t real_bytes,
              const DeviceNumbers& device)
      : y_(y), x_(x), channels_(channels), images_(images), real_bytes_(real_bytes), device_(device) {}

  FirTile choose() const {
    FirTile tile = of_row(kFirWideRow);
    if (resident(tile) < 2 && numbers_of(kFirRun) <= kFirNarrowRow) {
      // A narrow block reads more beside itself.
      const FirTile narrow = of_row(kFirNarrowRow);
      if (narrow.column_groups > x_.tap_groups() || resident(tile) == 0) tile = narrow;
    }
    while (resident(tile) == 0 && tile.rows > kFirRun) shrink(tile);
    choose_steps(tile);
    return tile;
  }

 private:
  int numbers_of(int column_groups) const { return column_groups * x_.phases * channels_; }
  static int whole_runs(std::int64_t groups, int most) {
    const std::int64_t runs =
        std::clamp<std::int64_t>(divide_up(groups, std::int64_t{kFirRun}), 1, most / kFirRun);
    return static_cast<int>(runs) * kFirRun;
  }

  FirTile of_row(int row) const {
    FirTile tile;
    tile.ring_pitch = row + 1;
    tile.column_groups = whole_runs(x_.groups, row / (x_.phases * channels_));
    tile.step_groups = whole_runs(y_.groups, y_.advance > 1 ? 16 : 32);
    lay_out(tile);
    return tile;
  }

  void shrink(FirTile& tile) const {
    if (tile.column_groups > kFirRun) {
      tile.column_groups -= kFirRun;
    } else if (tile.step_groups > kFirRun) {
      tile.step_groups -= kFirRun;
    } else {
      tile.rows -= kFirRun;
    }
    lay_out(tile);
  }

  void lay_out(FirTile& tile) const {
    const int numbers_out = numbers_of(tile.column_groups);
    tile.threads = divide_up(kFirThreads / numbers_out * numbers_out, 32) * 32;
    tile.plane = tile.column_groups + x_.tap_groups();
    if (tile.plane % 8 == 0) tile.plane += 4;  // neighbouring planes' numbers in different banks
    tile.pitch = tile.plane * x_.advance * channels_;
    if (tile.pitch % 8 == 0) tile.pitch += 4;  // eight rows' groups of kFirTaps in different banks
    const int groups = tile.step_groups + y_.tap_groups() + divide_up(tile.rows, y_.advance);
    tile.ring_groups = divide_up(groups, kFirTaps) * kFirTaps;
    const int staged = 2 * tile.rows * tile.pitch;
    const int ring = tile.ring_groups * y_.advance * tile.ring_pitch;
    const int numbers = 2 * kFirWeights + staged + ring;
    const int columns = (tile.column_groups + x_.tap_groups() - 1) * x_.advance * channels_;
    const int places = kFirWideRow / kFirRun + columns;
    tile.shared_bytes = numbers * real_bytes_ + static_cast<std::size_t>(places) * kFirPlaceBytes;
  }

  /// Blocks that a multiprocessor holds.
  std::int64_t resident(const FirTile& tile) const {
    if (tile.shared_bytes > device_.block_shared_bytes) return 0;
    constexpr std::size_t kReserved = 1024;  // of each block
    const auto by_memory =
        static_cast<std::int64_t>(device_.multiprocessor_shared_bytes / (tile.shared_bytes + kReserved));
    const int threads = std::min(device_.multiprocessor_threads, kFirThreads * fir_blocks(real_bytes_));
    return std::max<std::int64_t>(std::min<std::int64_t>(by_memory, threads / tile.threads), 1);
  }

  /// Each block begins with the rows above its own: few blocks do that seldom, many fill the last wave.
  void choose_steps(FirTile& tile) const {
    constexpr std::int64_t kMaxSteps = 64;
    const std::int64_t slots = std::max<std::int64_t>(resident(tile), 1) * device_.multiprocessors;
    const std::int64_t strips = images_ * divide_up(x_.groups, std::int64_t{tile.column_groups});
    const std::int64_t all_steps = divide_up(y_.groups, std::int64_t{tile.step_groups});
    std::int64_t least = 0;
    for (std::int64_t steps = 1; steps <= std::min(all_steps, kMaxSteps); ++steps) {
      const std::int64_t waves = divide_up(strips * divide_up(all_steps, steps), slots);
      const std::int64_t time = waves * (steps * tile.step_groups + y_.tap_groups());
      if (steps > 1 && time >= least) continue;
      least = time;
      tile.steps = static_cast<int>(steps);
    }
  }

  FirForm y_, x_;
  int channels_;
  std::int64_t images_;
  std::size_t real_bytes_;
  DeviceNumbers device_;
};

}  // namespace

FirForm form_of(const std::optional<FirPass>& pass, std::int64_t length) {
  FirForm form;
  form.groups = length;
  if (!pass.has_value()) return form;
  form.phases = static_cast<int>(pass->phases);
  form.advance = static_cast<int>(pass->advance);
  form.chunks = static_cast<int>(divide_up(pass->taps, kFirTaps * pass->advance));
  if (form.phases > 1) form.chunks = std::max(form.chunks, kFirMinInterpolationChunks);
  form.groups = divide_up(pass->out_length, pass->phases);
  return form;
}

FirTile choose_tile(const FirForm& y, const FirForm& x, int channels, std::int64_t images,
                    std::size_t real_bytes, const DeviceNumbers& device) {
  return TileChooser(y, x, channels, images, real_bytes, device).choose();
}

}  // namespace cumulus::recursive_filter

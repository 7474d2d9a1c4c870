#include "kernels/recursive_filter/fir/tensor_stage.h"

#include <algorithm>
#include <utility>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

class TensorTileChooser {
 public:
  TensorTileChooser(const TensorForm& y, const TensorForm& x, int channels, std::int64_t images,
                    std::size_t source_bytes, const DeviceNumbers& device)
      : y_(y), x_(x), channels_(channels), images_(images), source_bytes_(source_bytes), device_(device) {}

  /// Wide blocks read less beside themselves; two of a multiprocessor work while the other waits.
  TensorTile choose() const {
    TensorTile best = of(kTensorWideRow, kMaxRows);
    for (const auto& [row, rows] : {std::pair{kTensorWideRow, kMinRows}, {kTensorNarrowRow, kMaxRows},
                                    {kTensorNarrowRow, kMinRows}}) {
      if (resident(best) >= kTensorBlocks) break;
      // Fragments of two times 16 rows share their weights.
      if (rows < kMaxRows && x_.advance == 1) continue;
      if (x_.unit() * numbers_of_block() > row) continue;
      const TensorTile tile = of(row, rows);
      if (resident(tile) > resident(best)) best = tile;
    }
    choose_steps(best);
    return best;
  }

 private:
  int numbers_of_block() const { return kTensorSide * x_.phases * channels_; }
  static int whole_units(std::int64_t groups, int most, int unit) {
    const std::int64_t blocks = divide_up(groups, std::int64_t{kTensorSide});
    const std::int64_t units = std::clamp<std::int64_t>(divide_up(blocks, std::int64_t{unit}), 1, most / unit);
    return static_cast<int>(units) * unit;
  }

  static constexpr int kMinRows = 16, kMaxRows = 32;

  TensorTile of(int row, int rows) const {
    TensorTile tile;
    tile.ring_pitch = row + kTensorRowPadding;
    tile.column_blocks = whole_units(x_.groups, row / numbers_of_block(), x_.unit());
    tile.row_blocks = whole_units(y_.groups, y_.advance > 1 ? 2 : 4, y_.unit());
    tile.rows = rows;
    tile.line_groups = rows * channels_ / (16 * x_.fragments());
    lay_out(tile);
    return tile;
  }

  void lay_out(TensorTile& tile) const {
    const int columns = divide_up(tile.column_blocks * numbers_of_block(), 32);
    const int units = std::max(tile.line_groups * (tile.column_blocks / x_.unit()),
                               columns * (tile.row_blocks / y_.unit()));
    constexpr int kMinWarps = 4, kMaxWarps = kTensorThreads / 32;
    tile.threads = 32 * std::max(divide_up(units, divide_up(units, kMaxWarps)), kMinWarps);
    // A fragment's eight lines, a channel of a row each, in different banks.
    const int source = static_cast<int>(source_bytes_);
    const int numbers = kTensorSide * x_.reach(tile.column_blocks) * channels_;
    const int words = divide_up(numbers * source + 2 * kTensorVectorBytes, 4);
    constexpr int kBanks = 32;
    const int bank = 4 * channels_;
    tile.pitch = (divide_up(std::max(words - bank, 0), kBanks) * kBanks + bank) * 4 / source;
    tile.ring_rows = ring_rows(tile);
    tile.shared_bytes = (y_.phases * y_.steps + x_.phases * x_.steps) * kTensorWeightBytes +
                        numbers * kTensorPlaceBytes + tile.rows * channels_ * kTensorLineBytes +
                        static_cast<std::size_t>(tile.rows) * tile.pitch * source_bytes_ +
                        static_cast<std::size_t>(tile.ring_rows) * tile.ring_pitch * sizeof(float);
  }

  /// What lies between the first row that a step along y still reads and the last that is filtered along x
  /// before that step can go.
  int ring_rows(const TensorTile& tile) const {
    constexpr int kBatches = 96;  // of rows; then all repeats
    const int batch = tile.rows / kTensorSide;
    const int stride = y_.advance * tile.row_blocks;
    int most = 0;
    for (int have = 0, step = 0; have < kBatches * batch;) {
      have += batch;
      most = std::max(most, have - step * stride);
      while (step * stride + y_.reach(tile.row_blocks) <= have) ++step;
    }
    return divide_up(most, batch) * tile.rows;
  }

  /// Blocks that a multiprocessor holds.
  std::int64_t resident(const TensorTile& tile) const {
    if (tile.shared_bytes > device_.block_shared_bytes) return 0;
    constexpr std::size_t kReserved = 1024;  // of each block
    const auto by_memory =
        static_cast<std::int64_t>(device_.multiprocessor_shared_bytes / (tile.shared_bytes + kReserved));
    const int threads = std::min(device_.multiprocessor_threads, kTensorThreads * kTensorBlocks);
    return std::max<std::int64_t>(std::min<std::int64_t>(by_memory, threads / tile.threads), 1);
  }

  /// Each block begins with the rows above its own: few blocks do that seldom, many fill the last wave.
  void choose_steps(TensorTile& tile) const {
    constexpr std::int64_t kMaxSteps = 64;
    const std::int64_t slots = std::max<std::int64_t>(resident(tile), 1) * device_.multiprocessors;
    const std::int64_t strips =
        images_ * divide_up(x_.groups, std::int64_t{tile.column_blocks} * kTensorSide);
    const std::int64_t all_steps = divide_up(y_.groups, std::int64_t{tile.row_blocks} * kTensorSide);
    std::int64_t least = 0;
    for (std::int64_t steps = 1; steps <= std::min(all_steps, kMaxSteps); ++steps) {
      const std::int64_t waves = divide_up(strips * divide_up(all_steps, steps), slots);
      const std::int64_t time = waves * (steps * tile.row_blocks * y_.advance + y_.steps);
      if (steps > 1 && time >= least) continue;
      least = time;
      tile.steps = static_cast<int>(steps);
    }
  }

  TensorForm y_, x_;
  int channels_;
  std::int64_t images_;
  std::size_t source_bytes_;
  DeviceNumbers device_;
};

}  // namespace

TensorForm tensor_form_of(const std::optional<FirPass>& pass, std::int64_t length) {
  TensorForm form;
  form.groups = length;
  if (!pass.has_value()) return form;
  form.phases = static_cast<int>(pass->phases);
  form.advance = static_cast<int>(pass->advance);
  form.steps = static_cast<int>(
      divide_up((kTensorSide - 1) * pass->advance + pass->taps, std::int64_t{kTensorSide}));
  form.groups = divide_up(pass->out_length, pass->phases);
  return form;
}

TensorTile choose_tensor_tile(const TensorForm& y, const TensorForm& x, int channels, std::int64_t images,
                              std::size_t source_bytes, const DeviceNumbers& device) {
  return TensorTileChooser(y, x, channels, images, source_bytes, device).choose();
}

}  // namespace cumulus::recursive_filter

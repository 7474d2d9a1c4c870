#include "kernels/recursive_filter/fir/both_axes.h"

#include <algorithm>

#include "kernels/core/div.h"

namespace cumulus::recursive_filter {
namespace {

constexpr std::size_t kReserved = 1024;  // of each block

template <class Predicate>
bool changes_all(const FirStage& stage, const Predicate& changes) {
  return (!stage.y.has_value() || changes(*stage.y)) && (!stage.x.has_value() || changes(*stage.x));
}

/// Blocks of a device's multiprocessor; 0 where one has not the memory.
std::int64_t resident(std::size_t shared_bytes, int threads, int most_threads, const DeviceNumbers& device) {
  if (shared_bytes > device.block_shared_bytes) return 0;
  const auto by_memory =
      static_cast<std::int64_t>(device.multiprocessor_shared_bytes / (shared_bytes + kReserved));
  const int by_threads =
      std::min(most_threads, device.multiprocessor_threads) / (divide_up(threads, 32) * 32);
  return std::max<std::int64_t>(std::min<std::int64_t>(by_memory, by_threads), 1);
}

/// Instructions of so many tasks of threads, each of `of_task`: of whole warps.
std::int64_t instructions(std::int64_t tasks, std::int64_t of_task) { return divide_up(tasks, 32) * of_task; }

/// What all blocks of a tile take of a multiprocessor, each so many instructions: those of a wave share it,
/// and wait at its beginning and end as long as `alone` take.
template <class Tile>
std::int64_t time_of(const Tile& tile, std::int64_t of_block, std::int64_t alone, std::int64_t images,
                     std::int64_t at_once, std::int64_t multiprocessors) {
  const std::int64_t blocks = tile.blocks_x * tile.blocks_y * images;
  const std::int64_t waves = blocks / (at_once * multiprocessors);
  const std::int64_t rest = divide_up(blocks - waves * at_once * multiprocessors, multiprocessors);
  return waves * (at_once * of_block + alone) + (rest > 0 ? rest * of_block + alone : 0);
}

/// Those of a block that samples; what they are was counted (docs/experiments/recursive_filter.md).
std::int64_t sampling_instructions(const SamplingTile& tile, const FirForm& y, const FirForm& x,
                                   int channels) {
  constexpr int kStart = 300;
  const int planes = x.advance * channels;
  const int taps_y = y.tap_groups() * y.advance;
  const std::int64_t along_y =
      kSamplingRun * kSamplingWide * taps_y + 6 * (kSamplingRun * y.advance + taps_y) + 150;
  const std::int64_t along_x = kFirRun * x.tap_groups() * x.advance + 80;
  const std::int64_t first = tile.first_groups * planes / kSamplingWide * tile.line_runs;
  const std::int64_t rows = std::int64_t{tile.line_runs} * kSamplingRun;
  return instructions(tile.threads, kStart) + instructions(first, along_y) +
         tile.steps *
             (instructions(tile.threads, along_y) + instructions(rows * tile.runs * channels, along_x));
}

/// Those of a block that interpolates.
std::int64_t interpolation_instructions(const InterpolationTile& tile, const FirForm& y, const FirForm& x,
                                        int channels, int taps) {
  constexpr int kStart = 350;
  const std::int64_t along_y = (std::int64_t{4} * kColumnGroups * taps + 60) * y.phases;
  const std::int64_t along_x = std::int64_t{kFirRun} * x.phases * (taps + 1) + 60;
  const std::int64_t lines = divide_up(tile.lines, kFirRun) * kFirRun;
  return instructions(tile.threads, kStart + along_y) + instructions(lines * tile.runs * channels, along_x);
}

/// Of `line_runs` and `runs`; a step a block.
SamplingTile lay_out_sampling(const FirForm& y, const FirForm& x, int channels, int line_runs, int runs) {
  const int planes = x.advance * channels;
  const int groups = runs * kFirRun;
  SamplingTile tile;
  tile.line_runs = line_runs;
  tile.runs = runs;
  tile.first_groups = x.tap_groups();  // a number more than runs need: it may come late, at a vector
  tile.ring = tile.first_groups + groups;
  tile.plane = shared_plane_pitch(tile.ring);
  tile.pitch = shared_row_pitch(planes * tile.plane);
  tile.results_pitch = shared_row_pitch(groups * channels);
  tile.threads = groups * planes / kSamplingWide * line_runs;
  tile.blocks_x = divide_up(x.groups, std::int64_t{groups});
  tile.blocks_y = divide_up(y.groups, std::int64_t{line_runs} * kSamplingRun);
  tile.shared_bytes = sizeof(float) * static_cast<std::size_t>(line_runs * kSamplingRun) *
                      static_cast<std::size_t>(tile.pitch + tile.results_pitch);
  return tile;
}

/// For `taps` along y.
InterpolationTile lay_out_interpolation(const FirForm& y, const FirForm& x, int channels, int taps,
                                        int line_runs, int runs) {
  const int groups = runs * kFirRun;
  InterpolationTile tile;
  tile.line_runs = line_runs;
  tile.runs = runs;
  tile.lines = line_runs * kColumnGroups + taps - 1;
  tile.plane = shared_plane_pitch(divide_up(groups + taps - 1, 4) * 4);
  tile.pitch = shared_row_pitch(channels * tile.plane + 1);
  tile.results_pitch = shared_row_pitch(groups * x.phases * channels);
  tile.threads = 2 * x.phases * channels * runs * line_runs;
  tile.blocks_x = divide_up(x.groups, std::int64_t{groups});
  tile.blocks_y = divide_up(y.groups, std::int64_t{line_runs} * kColumnGroups);
  tile.shared_bytes = sizeof(float) * static_cast<std::size_t>(tile.lines) *
                      static_cast<std::size_t>(tile.pitch + tile.results_pitch);
  return tile;
}

}  // namespace

bool is_sampling(const FirStage& stage) {
  return changes_all(stage,
                     [](const FirPass& pass) { return pass.advance > 1 && pass.advance <= kFirSmallStep; });
}

bool is_interpolation(const FirStage& stage) {
  return changes_all(stage,
                     [](const FirPass& pass) { return pass.phases > 1 && pass.phases <= kFirSmallStep; });
}

int interpolation_taps(const FirStage& stage) {
  std::int64_t taps = 4;
  if (stage.y.has_value()) taps = std::max(taps, stage.y->taps);
  if (stage.x.has_value()) taps = std::max(taps, stage.x->taps);
  if (taps <= 12) return static_cast<int>(divide_up(taps, 2) * 2);
  return static_cast<int>(std::max<std::int64_t>(taps, kMaxInterpolationTaps));
}

std::optional<SamplingTile> choose_sampling_tile(const FirStage& stage, const FirExtents& before,
                                                 int channels, std::int64_t images,
                                                 const DeviceNumbers& device) {
  constexpr std::int64_t kMaxSteps = 64;
  const FirForm y = form_of(stage.y, before.height);
  const FirForm x = form_of(stage.x, before.width);
  const int planes = x.advance * channels;
  std::optional<SamplingTile> best;
  std::int64_t least = 0;
  for (int line_runs = 1; line_runs * kSamplingRun <= kColumnRuns * kFirRun; line_runs *= 2) {
    for (int runs = 1; kFirRun * runs * planes / kSamplingWide * line_runs <= kBothAxesThreads; ++runs) {
      SamplingTile tile = lay_out_sampling(y, x, channels, line_runs, runs);
      const std::int64_t at_once =
          resident(tile.shared_bytes, tile.threads, kBothAxesThreads * kSamplingBlocks, device);
      if (at_once == 0) continue;
      const std::int64_t all_steps = tile.blocks_x;
      for (tile.steps = 1; tile.steps <= std::min(all_steps, kMaxSteps); ++tile.steps) {
        tile.blocks_x = divide_up(all_steps, std::int64_t{tile.steps});
        const std::int64_t of_block = sampling_instructions(tile, y, x, channels);
        const std::int64_t alone = of_block * divide_up(kBothAxesThreads, tile.threads);
        const std::int64_t time = time_of(tile, of_block, alone, images, at_once, device.multiprocessors);
        if (best.has_value() && time >= least) continue;
        least = time;
        best = tile;
      }
    }
  }
  return best;
}

std::optional<InterpolationTile> choose_interpolation_tile(const FirStage& stage, const FirExtents& before,
                                                           int channels, std::int64_t images,
                                                           const DeviceNumbers& device) {
  const FirForm y = form_of(stage.y, before.height);
  const FirForm x = form_of(stage.x, before.width);
  const int taps = interpolation_taps(stage);
  if (taps > kMaxInterpolationTaps) return {};
  std::optional<InterpolationTile> best;
  std::int64_t least = 0;
  for (int line_runs = 2; line_runs <= kColumnRuns; ++line_runs) {
    for (int runs = 1; 2 * x.phases * channels * runs * line_runs <= kBothAxesThreads; ++runs) {
      const InterpolationTile tile = lay_out_interpolation(y, x, channels, taps, line_runs, runs);
      const std::int64_t at_once =
          resident(tile.shared_bytes, tile.threads, kBothAxesThreads * interpolation_blocks(taps), device);
      if (at_once == 0) continue;
      constexpr std::int64_t kAlone = 4000;
      const std::int64_t of_block = interpolation_instructions(tile, y, x, channels, taps);
      const std::int64_t time = time_of(tile, of_block, kAlone, images, at_once, device.multiprocessors);
      if (best.has_value() && time >= least) continue;
      least = time;
      best = tile;
    }
  }
  return best;
}

}  // namespace cumulus::recursive_filter

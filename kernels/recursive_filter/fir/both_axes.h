#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/device_numbers.h"
#include "kernels/core/div.h"
#include "kernels/core/host_device.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/stage.h"

// How a stage that samples or interpolates, along both axes or along one, is divided among the blocks of a
// GPU, in single precision.

namespace cumulus::recursive_filter {

/// Results of a thread that samples along y, rows of neighbouring columns: few rows are loaded twice.
inline constexpr int kSamplingRun = 16;
inline constexpr int kSamplingWide = 2;
/// Groups of results that a thread interpolates along y; the most taps of a phase.
inline constexpr int kColumnGroups = 4;
inline constexpr int kMaxInterpolationTaps = 20;
/// The most threads of a block, and how many blocks have registers enough on a multiprocessor.
inline constexpr int kBothAxesThreads = 256;
inline constexpr int kSamplingBlocks = 2;
constexpr int interpolation_blocks(int taps) { return taps > 10 ? 2 : 3; }
/// The most runs of rows, one below the other, of a block's columns.
inline constexpr int kColumnRuns = 8;

/// Taps along y of one phase that a sampling adds at once, of `taps`: as few zeros as can be.
inline constexpr int kMaxColumnTaps = 10;
constexpr int sampling_taps(std::int64_t taps) {
  int best = kMaxColumnTaps;
  for (int at_once = kMaxColumnTaps; at_once >= 4; at_once -= 2) {
    if (divide_up(taps, at_once) * at_once < divide_up(taps, best) * best) best = at_once;
  }
  return best;
}

/// Whether a stage changes the rate, downwards or upwards, of all axes that it filters, by small steps.
bool is_sampling(const FirStage& stage);
bool is_interpolation(const FirStage& stage);

/// A block has `line_runs` runs of kSamplingRun rows of results, and goes along them: `steps` times `runs`
/// runs of pixels of each channel.
struct SamplingTile {
  int line_runs = 1, runs = 1, steps = 1;
  /// Groups of pixels that are filtered along y before the first step; what a plane holds of them, a ring;
  /// numbers from plane to plane, and from row to row of planes and of results.
  int first_groups = 0, ring = 0, plane = 0, pitch = 0, results_pitch = 0;
  int threads = 0;
  std::int64_t blocks_x = 1, blocks_y = 1;  // of an image
  std::size_t shared_bytes = 0;
};

/// A block has `line_runs` times kColumnGroups groups of rows, of `runs` runs of groups of pixels.
struct InterpolationTile {
  int line_runs = 1, runs = 1;
  /// Rows of the input; numbers from plane to plane and from row to row of it, and from row to row of what is
  /// interpolated along x.
  int lines = 0, plane = 0, pitch = 0, results_pitch = 0;
  int threads = 0;
  std::int64_t blocks_x = 1, blocks_y = 1;  // of an image
  std::size_t shared_bytes = 0;
};

/// Nothing where no block of the device has the memory, or taps are too many.
std::optional<SamplingTile> choose_sampling_tile(const FirStage& stage, const FirExtents& before,
                                                 int channels, std::int64_t images,
                                                 const DeviceNumbers& device);
std::optional<InterpolationTile> choose_interpolation_tile(const FirStage& stage, const FirExtents& before,
                                                           int channels, std::int64_t images,
                                                           const DeviceNumbers& device);

/// Numbers from row to row: eight rows' vectors of four, or numbers, in different banks.
CUMULUS_HOST_DEVICE constexpr int shared_row_pitch(int numbers) { return divide_up(numbers, 32) * 32 + 4; }
/// Numbers from plane to plane of so many each: neighbouring planes' numbers in different banks.
constexpr int shared_plane_pitch(int numbers) { return numbers % 8 == 0 ? numbers + 4 : numbers; }
/// Taps of the kernel for an interpolation, along both axes: as many as those that are, or more.
int interpolation_taps(const FirStage& stage);

}  // namespace cumulus::recursive_filter

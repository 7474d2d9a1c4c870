#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/device_numbers.h"
#include "kernels/core/host_device.h"
#include "kernels/recursive_filter/fir/gaussian.h"

// How a stage of small steps (FirStage) is divided among the blocks of a GPU.

namespace cumulus::recursive_filter {

/// Results of a thread, neighbours along the axis that it filters; taps that it adds to each of them at a
/// time.
inline constexpr int kFirRun = 8;
inline constexpr int kFirTaps = 4;
/// The largest block, and how many of them have registers enough on a multiprocessor.
inline constexpr int kFirThreads = 288;
constexpr int fir_blocks(std::size_t real_bytes) { return real_bytes > sizeof(float) ? 2 : 3; }
/// Numbers of a row that is filtered along x, at most, in narrow and in wide blocks.
inline constexpr int kFirNarrowRow = 72;
inline constexpr int kFirWideRow = 144;
/// Weights of an axis, with zeros after those of each phase: at most 83 taps, or four times 12.
inline constexpr int kFirWeights = 96;
/// Chunks (below) of the Gaussians that interpolate.
inline constexpr int kFirMinInterpolationChunks = 2;
inline constexpr int kFirMaxInterpolationChunks = 5;

/// What says where a number of the input, or a run of results along x, comes from and goes.
inline constexpr std::size_t kFirPlaceBytes = 8;

/// The form of a pass that a block needs. Results come in groups of `phases`; a group's taps begin at a
/// multiple of `advance`; taps come in `chunks` of kFirTaps times `advance`.
struct FirForm {
  int phases = 1, advance = 1, chunks = 1;
  std::int64_t groups = 1;

  CUMULUS_HOST_DEVICE int tap_groups() const { return kFirTaps * chunks; }
};
/// Of an absent pass: an axis of `length` places stays as it is.
FirForm form_of(const std::optional<FirPass>& pass, std::int64_t length);

/// A block has so many groups of results along x, and goes down its `steps` times `step_groups` groups along
/// y.
struct FirTile {
  int column_groups = kFirRun;
  int step_groups = kFirRun;
  int steps = 1;
  int rows = 16;  // of the input, filtered along x at a time
  int threads = kFirThreads;

  /// Numbers from row to row of the input, and between planes of it: a plane has every advance-th pixel of a
  /// channel.
  int plane = 0, pitch = 0;
  /// Groups along y of rows that have been filtered along x, in a ring.
  int ring_groups = 0;
  /// Numbers from row to row of these.
  int ring_pitch = 0;
  std::size_t shared_bytes = 0;
};

/// For results of `real_bytes` each, `images` of them.
FirTile choose_tile(const FirForm& y, const FirForm& x, int channels, std::int64_t images,
                    std::size_t real_bytes, const DeviceNumbers& device);

}  // namespace cumulus::recursive_filter

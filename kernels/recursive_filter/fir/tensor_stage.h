#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/device_numbers.h"
#include "kernels/core/host_device.h"
#include "kernels/recursive_filter/fir/gaussian.h"

// How a stage of small steps (FirStage) in single precision is divided among blocks that multiply on matrix
// units (fir/tensor_stage.cuh).

namespace cumulus::recursive_filter {

/// Results of an output block and numbers of a k-step along the axis that is filtered.
inline constexpr int kTensorSide = 8;
/// The largest block, and how many of them have registers enough on a multiprocessor.
inline constexpr int kTensorThreads = 384;
inline constexpr int kTensorBlocks = 2;
/// Numbers of a row that has been filtered along x, at most, in narrow and in wide blocks; so many more lie
/// from row to row, so that four rows of eight groups of four lie in different banks.
inline constexpr int kTensorNarrowRow = 96;
inline constexpr int kTensorWideRow = 192;
inline constexpr int kTensorRowPadding = 8;
/// Weights of an axis: at most 64 taps, or four times 20.
inline constexpr int kTensorTaps = 96;
/// Weights of an output block and a k-step, for both parts of each.
inline constexpr std::size_t kTensorWeightBytes = 512;
inline constexpr std::size_t kTensorPlaceBytes = 4;
inline constexpr std::size_t kTensorLineBytes = 8;
/// What is loaded at once where rows are aligned.
inline constexpr int kTensorVectorBytes = 16;

/// A pass as a banded matrix: kTensorSide groups of `phases` results begin at every advance-th k-step of the
/// input and reach over `steps` of them.
struct TensorForm {
  int phases = 1, advance = 1, steps = 1;
  std::int64_t groups = 1;

  /// Blocks of kTensorSide groups that a warp filters together.
  CUMULUS_HOST_DEVICE int unit() const { return phases > 1 ? 1 : 2; }
  /// Of 16 lines each, that a warp filters along x together.
  CUMULUS_HOST_DEVICE int fragments() const { return advance > 1 ? 1 : 2; }
  /// k-steps that `blocks` of kTensorSide groups reach.
  CUMULUS_HOST_DEVICE int reach(int blocks) const { return advance * (blocks - 1) + steps; }
};
/// Of an absent pass: an axis of `length` places stays as it is.
TensorForm tensor_form_of(const std::optional<FirPass>& pass, std::int64_t length);

/// A block of threads has so many blocks of groups along x, and goes down its `steps` times `row_blocks` ones
/// along y.
struct TensorTile {
  int column_blocks = 2;
  int row_blocks = 4;
  int steps = 1;
  int rows = 32;        // of the input, filtered along x at a time
  int line_groups = 1;  // that warps make of their channels
  int threads = kTensorThreads;
  int pitch = 0;  // elements from row to row of the input
  int ring_pitch = 0;
  int ring_rows = 0;
  std::size_t shared_bytes = 0;
};

/// For `images` of elements of `source_bytes` each.
TensorTile choose_tensor_tile(const TensorForm& y, const TensorForm& x, int channels, std::int64_t images,
                              std::size_t source_bytes, const DeviceNumbers& device);

/// Whether a GPU has matrix units for it.
constexpr bool tensor_stages_serve(const DeviceNumbers& device) { return device.architecture >= 80; }

}  // namespace cumulus::recursive_filter

#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

namespace cumulus::recursive_filter {

/// Results of a call's first slice: a millisecond or two.
inline constexpr std::int64_t kFirstResults = std::int64_t{1} << 28;

/// Images between the stages, or before or after them.
template <class Elements>
struct Layer {
  Elements elements;
  FirExtents extents;
  std::int64_t row, image;  // numbers from one to the next
  bool padded;              // whether there is room behind each row, to a multiple of kFirDeviceRow numbers
};
struct Layers {
  Layer<SourceElements> from;
  Layer<TargetElements> to;
  std::int64_t images, channels;
};

/// Runs a stage along one axis, of floats along x, and of halves along y where it reads or writes images;
/// false where it is another, or rows that it writes do not begin at whole vectors.
bool run_axis_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers);

}  // namespace cumulus::recursive_filter

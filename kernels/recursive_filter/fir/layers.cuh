#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

namespace cumulus::recursive_filter {

/// Images between the stages, or before or after them.
template <class Elements>
struct Layer {
  Elements elements;
  FirExtents extents;
  std::int64_t row, image;  // numbers from one to the next
};
struct Layers {
  Layer<SourceElements> from;
  Layer<TargetElements> to;
  std::int64_t images, channels;

  std::int64_t results() const { return to.extents.height * to.extents.width * channels * images; }
};

/// Results of a call's first slice: a millisecond or two.
inline constexpr std::int64_t kFirstResults = std::int64_t{1} << 28;

/// Filters a stage of small steps on matrix units, where tensor_stages_serve: exactly, or for results that are
/// rounded to halves.
void run_tensor_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers, bool exact);

}  // namespace cumulus::recursive_filter

#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/fir/both_axes.h"
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

/// Bytes of a row; fewer than 2^32 where a stage is not a RingPlan (fir/plan.h).
template <class Elements>
unsigned row_bytes_of(const Layer<Elements>& layer) {
  const std::int64_t element = layer.elements.kind == ElementKind::kHalf ? 2 : 4;
  return static_cast<unsigned>(layer.row * element);
}

/// A stage along one axis whose rate stays, of floats or of halves.
void run_axis_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers);
/// One that samples, of floats or halves, and gives floats whose rows are padded.
void run_sampling(CudaExecutor& executor, const FirStage& stage, const SamplingTile& tile,
                  const Layers& layers);
/// One that interpolates floats, and gives floats or halves.
void run_interpolation(CudaExecutor& executor, const FirStage& stage, const InterpolationTile& tile,
                       const Layers& layers);

}  // namespace cumulus::recursive_filter

#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/draw/plans.h"
#include "kernels/sampling_table/draw/points.h"

// Drawing on a GPU.

namespace cumulus::sampling_table {

/// Samples, or densities, of a call's first slice (launch_slices): a millisecond or two.
inline constexpr std::int64_t kFirstSamples = std::int64_t{1} << 26;
/// Of any: numbers of 32 bits count their words.
inline constexpr std::int64_t kMaxSamples = std::int64_t{1} << 30;

template <class Points>
struct DrawLaunch {
  sampling::TableView table;
  Points points;
  std::uint32_t count;  ///< 1 to kMaxSamples.
  SampleArrays arrays;
};

/// Points are a PointSource or GivenPoints.
template <class Points>
void draw_by(CudaExecutor& executor, const DrawPlan& plan, const DrawLaunch<Points>& draw);

/// The density at each of `coordinates`, of which there are one or more.
void evaluate(CudaExecutor& executor, const sampling::TableView& table, const float* coordinates,
              int dimensions, DeviceSpan<float> pdf);

}  // namespace cumulus::sampling_table

#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/direct.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/stage.h"

// What method.h chooses for a blur of positive weights on a GPU: the kernel of each stage, and all that its
// launch needs besides the stage and the images.

namespace cumulus::recursive_filter {

/// fir/direct.cuh: for stages of a kept rate, in single precision.
struct DirectPlan {
  DirectTile tile;
};

/// fir/stage.cuh: down a ring of rows, whatever the rates.
struct RingPlan {
  FirTile tile;
};

/// fir/axes.cu: along one axis, of a kept rate, in single precision.
struct OneAxisPlan {};

/// fir/both_axes.cu: for stages that sample, and for those that interpolate, in single precision.
struct SamplingPlan {
  SamplingTile tile;
};
struct InterpolationPlan {
  InterpolationTile tile;
};

/// fir/large_steps.cuh: a pass of any step, along one axis, without shared memory for what it reaches.
struct LargeStepPlan {};

using FirStagePlan =
    std::variant<DirectPlan, RingPlan, OneAxisPlan, SamplingPlan, InterpolationPlan, LargeStepPlan>;

struct FirPlan {
  std::vector<FirStage> stages;
  std::vector<FirStagePlan> kernels;  // one for each stage
  FirScratch scratch;                 // of all images
  std::size_t scratch_bytes = 0;
};

}  // namespace cumulus::recursive_filter

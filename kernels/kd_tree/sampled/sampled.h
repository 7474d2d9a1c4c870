#pragma once

#include "kernels/kd_tree/build/build.h"

// Builds from samples on a GPU, of checked arguments.
namespace cumulus::kd_tree {

/// Takes the plan's scratch bytes. Waits for the sizes of the buckets: where one has no room, the tree is the
/// exact one.
void build_from_samples(CudaExecutor& executor, const BuildFromSamples& plan, const BuildJob<float>& job,
                        KdTreeReport* report);

}  // namespace cumulus::kd_tree

#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"

// What searches on a GPU are measured against: the published walks of a left-balanced tree, whose nodes are
// its points, by one thread a query in the queries' own order. Three FLOAT32.

namespace cumulus::bench {

enum class TreeWalk {
  kStack,      // depth first, farther children on a stack: the closest point alone
  kStackFree,  // I. Wald, "A stack-free traversal algorithm for left-balanced k-d trees", 2022
};

struct TreeWalkJob {
  const float* nodes;  // [points, 3], left-balanced
  const std::int64_t* idx_array;
  std::int64_t points;
  const float* queries;  // [queries, 3]
  std::int64_t count;
  int neighbors;          // 1, or kept in a heap of 8 or 64 places in local memory
  std::int64_t* indices;  // [queries, neighbors], nearest first
  float* distances;
};

/// `threads` of a block.
void walk_tree(CudaExecutor& executor, TreeWalk walk, int threads, const TreeWalkJob& job);

}  // namespace cumulus::bench

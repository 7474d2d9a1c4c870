#pragma once

#include <cstdint>

#include "kernels/kd_tree/kd_tree_query.h"

// What queries keep in scratch memory.
namespace cumulus::kd_tree {

/// A query of a CPU's search and its place on a curve through the tree.
struct OrderedQuery {
  std::uint64_t code;
  std::int64_t number;

  bool operator<(const OrderedQuery& other) const { return code < other.code; }
};

/// The extents along one axis of a node's two children; those of FLOAT64 moved outwards.
struct alignas(16) ChildExtents {
  float left_lower;
  float left_upper;
  float right_lower;
  float right_upper;
};

/// Along one axis, where a node's left child ends and its right one begins. The lowest bits of both hold the
/// axis.
struct alignas(8) SplitNode {
  float left_upper;
  float right_lower;
};

}  // namespace cumulus::kd_tree

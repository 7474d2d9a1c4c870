#include "cumulus/kd_tree.h"

#include "cumulus/v1/kd_tree.pb.h"
#include "library/operation_access.h"

namespace cumulus {
namespace {

v1::KdTreeSplit to_wire(KdTreeSplit split) {
  switch (split) {
    case KdTreeSplit::kWidestSpread:
      return v1::WIDEST_SPREAD;
    case KdTreeSplit::kRoundRobin:
      return v1::ROUND_ROBIN;
    case KdTreeSplit::kMidpoint:
      return v1::MIDPOINT;
  }
  return v1::KD_TREE_SPLIT_UNSPECIFIED;
}

v1::KdTreeMedians to_wire(KdTreeMedians medians) {
  switch (medians) {
    case KdTreeMedians::kExact:
      return v1::MEDIANS_EXACT;
    case KdTreeMedians::kSampled:
      return v1::MEDIANS_SAMPLED;
  }
  return v1::KD_TREE_MEDIANS_UNSPECIFIED;
}

v1::BuildKdTreeRequest build_request(const Source& points, const KdTreeOptions& options,
                                     OperationInputs& inputs) {
  v1::BuildKdTreeRequest request;
  inputs.encode(points, *request.mutable_points());
  request.set_leaf_size(options.leaf_size);
  request.set_split(to_wire(options.split));
  request.set_medians(to_wire(options.medians));
  return request;
}

v1::BuildKdTreeRequest left_balanced_request(const Source& points, OperationInputs& inputs) {
  v1::BuildKdTreeRequest request;
  inputs.encode(points, *request.mutable_points());
  request.set_layout(v1::LEFT_BALANCED);
  return request;
}

v1::FindNeighborsRequest neighbors_request(const KdTree& tree, const Source& queries,
                                           const NeighborOptions& options, OperationInputs& inputs) {
  v1::FindNeighborsRequest request;
  inputs.encode(tree.points, *request.mutable_tree()->mutable_points());
  inputs.encode(tree.idx_array, *request.mutable_tree()->mutable_idx_array());
  inputs.encode(tree.node_data, *request.mutable_tree()->mutable_node_data());
  inputs.encode(tree.node_bounds, *request.mutable_tree()->mutable_node_bounds());
  inputs.encode(queries, *request.mutable_queries());
  if (options.radii.has_value()) inputs.encode(*options.radii, *request.mutable_radii());
  if (options.radius.has_value()) request.set_radius(*options.radius);
  request.set_squared(options.squared);
  for (const double period : options.period) request.add_period(period);
  return request;
}

}  // namespace

Operation build_kd_tree(const Source& points, const KdTreeOptions& options) {
  OperationInputs inputs;
  const v1::BuildKdTreeRequest request = build_request(points, options, inputs);
  return OperationAccess::make("BuildKdTree", request, inputs);
}

Operation build_kd_tree(const Source& points, const Source& payload, const KdTreeOptions& options) {
  OperationInputs inputs;
  v1::BuildKdTreeRequest request = build_request(points, options, inputs);
  inputs.encode(payload, *request.mutable_payload());
  return OperationAccess::make("BuildKdTree", request, inputs);
}

Operation arrange_left_balanced_kd_tree(const Source& points) {
  OperationInputs inputs;
  const v1::BuildKdTreeRequest request = left_balanced_request(points, inputs);
  return OperationAccess::make("BuildKdTree", request, inputs);
}

Operation arrange_left_balanced_kd_tree(const Source& points, const Source& payload) {
  OperationInputs inputs;
  v1::BuildKdTreeRequest request = left_balanced_request(points, inputs);
  inputs.encode(payload, *request.mutable_payload());
  return OperationAccess::make("BuildKdTree", request, inputs);
}

Operation find_nearest(const KdTree& tree, const Source& queries, int nearest,
                       const NeighborOptions& options) {
  OperationInputs inputs;
  v1::FindNeighborsRequest request = neighbors_request(tree, queries, options, inputs);
  request.set_nearest(nearest);
  return OperationAccess::make("FindNeighbors", request, inputs);
}

Operation count_neighbors(const KdTree& tree, const Source& queries, const NeighborOptions& options) {
  OperationInputs inputs;
  v1::FindNeighborsRequest request = neighbors_request(tree, queries, options, inputs);
  request.mutable_counts();
  return OperationAccess::make("FindNeighbors", request, inputs);
}

Operation sum_nearest(const KdTree& tree, const Source& queries, const Source& payload, int nearest,
                      const NeighborOptions& options) {
  OperationInputs inputs;
  v1::FindNeighborsRequest request = neighbors_request(tree, queries, options, inputs);
  inputs.encode(payload, *request.mutable_payload());
  request.set_nearest(nearest);
  return OperationAccess::make("FindNeighbors", request, inputs);
}

Operation sum_neighbors(const KdTree& tree, const Source& queries, const Source& payload,
                        const NeighborOptions& options) {
  OperationInputs inputs;
  v1::FindNeighborsRequest request = neighbors_request(tree, queries, options, inputs);
  inputs.encode(payload, *request.mutable_payload());
  request.mutable_counts();
  return OperationAccess::make("FindNeighbors", request, inputs);
}

Operation list_neighbors(const KdTree& tree, const Source& queries, std::int64_t max_neighbors,
                         const NeighborOptions& options) {
  OperationInputs inputs;
  v1::FindNeighborsRequest request = neighbors_request(tree, queries, options, inputs);
  request.mutable_lists()->set_max_neighbors(max_neighbors);
  return OperationAccess::make("FindNeighbors", request, inputs);
}

}  // namespace cumulus

#include "server/operations/kd_tree/build.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/scratch.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_options(const BuildKdTree::Request& request, KdTreeOptions& options) {
  if (request.leaf_size() < 0 || request.leaf_size() > kMaxKdTreePoints) {
    return bad_field("leaf_size", concat("is ", request.leaf_size(), "; 1 to 2^31 - 1, or 0 for ",
                                         KdTreeOptions{}.leaf_size, ", is right"));
  }
  if (request.leaf_size() > 0) options.leaf_size = request.leaf_size();
  const auto split = read_enum<KdTreeSplit>("split", request.split(),
                                            {{v1::KD_TREE_SPLIT_UNSPECIFIED, KdTreeSplit::kWidestSpread},
                                             {v1::WIDEST_SPREAD, KdTreeSplit::kWidestSpread},
                                             {v1::ROUND_ROBIN, KdTreeSplit::kRoundRobin},
                                             {v1::MIDPOINT, KdTreeSplit::kMidpoint}});
  if (!split.ok()) return split.status();
  options.split = *split;
  const auto medians = read_enum<KdTreeMedians>("medians", request.medians(),
                                                {{v1::KD_TREE_MEDIANS_UNSPECIFIED, KdTreeMedians::kExact},
                                                 {v1::MEDIANS_EXACT, KdTreeMedians::kExact},
                                                 {v1::MEDIANS_SAMPLED, KdTreeMedians::kSampled}});
  if (!medians.ok()) return medians.status();
  options.medians = *medians;
  if (options.medians == KdTreeMedians::kSampled && options.split != KdTreeSplit::kWidestSpread) {
    return bad_field("medians", concat("is MEDIANS_SAMPLED; with ", v1::KdTreeSplit_Name(request.split()),
                                       " MEDIANS_EXACT is right"));
  }
  return absl::OkStatus();
}

absl::Status read_layout(const BuildKdTree::Request& request, const ArrayShape& points,
                         BuildKdTree::Plan& plan) {
  const auto left_balanced = read_enum<bool>(
      "layout", request.layout(),
      {{v1::KD_TREE_LAYOUT_UNSPECIFIED, false}, {v1::NODES_AND_LEAVES, false}, {v1::LEFT_BALANCED, true}});
  if (!left_balanced.ok()) return left_balanced.status();
  plan.left_balanced = *left_balanced;
  if (!plan.left_balanced) return absl::OkStatus();
  if (request.leaf_size() != 0) {
    return bad_field("leaf_size",
                     concat("is ", request.leaf_size(), "; LEFT_BALANCED has no leaves: 0 is right"));
  }
  if (request.split() != v1::KD_TREE_SPLIT_UNSPECIFIED && request.split() != v1::ROUND_ROBIN) {
    return bad_field("split", concat("is ", v1::KdTreeSplit_Name(request.split()),
                                     "; of LEFT_BALANCED ROUND_ROBIN is right"));
  }
  if (request.medians() == v1::MEDIANS_SAMPLED) {
    return bad_field("medians", "is MEDIANS_SAMPLED; of LEFT_BALANCED MEDIANS_EXACT is right");
  }
  KdTreeShape& forest = plan.shape.forest;
  forest.levels = 1;  // which its arrays do not depend on
  if (forest.points > 0 && forest.trees > kMaxLeftBalancedPoints / forest.points) {
    return bad_field("points", concat("is ", points.text(),
                                      "; for LEFT_BALANCED at most 2^31 - 1 points of all trees are right"));
  }
  return absl::OkStatus();
}

absl::Status read_payload(const InputArray& payload, BuildKdTree::Plan& plan) {
  const ArrayShape rows = plan.shape.array(payload.shape.type, {plan.shape.forest.points});
  const auto& extents = payload.shape.extents;
  if (extents.size() < rows.extents.size() ||
      !std::equal(rows.extents.begin(), rows.extents.end(), extents.begin())) {
    return bad_field(payload.field,
                     concat("is ", payload.shape.text(), "; its first extents must be those of ", rows.text(),
                            ", a row for each point"));
  }
  plan.payload = payload.shape;
  plan.has_payload = true;
  return absl::OkStatus();
}

}  // namespace

std::int64_t BuildKdTree::Plan::row_bytes() const {
  const std::int64_t rows = shape.forest.all_points();
  return rows == 0 ? 0 : static_cast<std::int64_t>(payload.bytes()) / rows;
}

std::vector<SourceField> BuildKdTree::sources(const Request& request) {
  std::vector<SourceField> fields = {{"points", &request.points()}};
  if (request.has_payload()) fields.push_back({"payload", &request.payload()});
  return fields;
}

absl::StatusOr<BuildKdTree::Plan> BuildKdTree::validate(const Request& request,
                                                        std::span<const InputArray> inputs) {
  const auto shape = KdTreeArraysShape::read(inputs[0]);
  if (!shape.ok()) return shape.status();
  Plan plan;
  plan.shape = *shape;
  absl::Status status = read_options(request, plan.options);
  if (!status.ok()) return status;
  plan.shape.forest.levels = kd_tree_levels(plan.shape.forest.points, plan.options.leaf_size);
  status = read_layout(request, inputs[0].shape, plan);
  if (status.ok() && request.has_payload()) status = read_payload(inputs[1], plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> BuildKdTree::outputs(const Plan& plan) {
  std::vector<OutputSpec> specs = {{"points", plan.shape.points()}, {"idx_array", plan.shape.idx_array()}};
  if (!plan.left_balanced) {
    specs.push_back({"node_data", plan.shape.node_data()});
    specs.push_back({"node_bounds", plan.shape.node_bounds()});
  }
  if (plan.has_payload) specs.push_back({"payload", plan.payload});
  return specs;
}

Cost BuildKdTree::cost(const Plan& plan) {
  // A point on each level that splits it.
  constexpr double kCoreSeconds = 12e-9;
  constexpr double kGpuSeconds = 0.1e-9;
  const KdTreeShape& forest = plan.shape.forest;
  const double points = static_cast<double>(forest.all_points());
  // A left-balanced tree has a level for each bit of a point's number.
  const double levels = plan.left_balanced
                            ? std::log2(static_cast<double>(std::max<std::int64_t>(forest.points, 1)) + 1)
                            : static_cast<double>(forest.levels);
  const double work = points * (1 + levels) * (1 + static_cast<double>(forest.dimensions) / 4);
  const double copied = plan.has_payload ? static_cast<double>(plan.payload.bytes()) : 0;
  return {work * kCoreSeconds + copied * 1e-9, work * kGpuSeconds + copied * 2e-12};
}

template <Space S>
std::size_t BuildKdTree::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  return plan.shape.with_type([&]<class T>(T) {
    return plan.left_balanced ? arrange_left_balanced_scratch_bytes<T, S>(plan.shape.forest)
                              : build_kd_tree_scratch_bytes<T, S>(plan.shape.forest, plan.options, device);
  });
}

template <class E>
void BuildKdTree::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                      const Outputs<E::kSpace>& outputs, Report& report) {
  const auto idx_array = outputs.template as<std::int64_t>(1);
  plan.shape.with_type([&]<class T>(T) {
    const auto points = inputs.template as<const T>(0);
    if (plan.left_balanced) {
      return arrange_left_balanced(executor, points, plan.shape.forest,
                                   {outputs.template as<T>(0), idx_array}, &report);
    }
    build_kd_tree(
        executor, points, plan.shape.forest, plan.options,
        {outputs.template as<T>(0), idx_array, outputs.template as<KdTreeNode>(2), outputs.template as<T>(3)},
        &report);
  });
  if (!plan.has_payload) return;
  permute_rows(executor, plan.shape.forest, idx_array, inputs.template as<const std::byte>(1),
               plan.row_bytes(), outputs.template as<std::byte>(plan.left_balanced ? 2 : 4));
}

absl::Status BuildKdTree::conclude(const Plan& plan, const Report& report) {
  if (report.point < 0) return absl::OkStatus();
  const std::string tree = plan.shape.batched ? concat("tree ", report.tree, ", ") : "";
  return no_answer("NAN_COORDINATE",
                   concat("points: ", tree, "point ", report.point, ", dimension ", report.dimension,
                          " is NaN, which has no place in an order; leave such points out"),
                   {{"tree", concat(report.tree)},
                    {"point", concat(report.point)},
                    {"dimension", concat(report.dimension)}});
}

template std::size_t BuildKdTree::scratch_bytes<Space::kHost>(const Plan&, const DeviceNumbers&);
template std::size_t BuildKdTree::scratch_bytes<Space::kDevice>(const Plan&, const DeviceNumbers&);
template void BuildKdTree::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                               const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void BuildKdTree::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                               const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

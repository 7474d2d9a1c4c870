#include "server/operations/kd_tree/find_neighbors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "kernels/kd_tree/scratch.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

using Wanted = FindNeighbors::Wanted;

constexpr double kMaxPeriod = std::numeric_limits<float>::max();

/// A row of the payload for each of `count`, a tree's points or queries.
ArrayShape payload_shape(const FindNeighbors::Plan& plan, std::int64_t count) {
  return plan.has_channels ? plan.shape.array(plan.shape.type, {count, plan.summed_channels})
                           : plan.shape.array(plan.shape.type, {count});
}

/// Where lists hold so many neighbours.
std::vector<OutputSpec> arrays(const FindNeighbors::Plan& plan, std::int64_t listed) {
  const KdTreeArraysShape& shape = plan.shape;
  const std::int64_t queries = plan.search.queries;
  const bool sums = plan.summed_channels > 0;
  switch (plan.wanted) {
    case Wanted::kNearest:
      if (sums) {
        return {{"sums", payload_shape(plan, queries)}, {"distances", shape.array(shape.type, {queries})}};
      }
      return {{"indices", shape.array(v1::INT64, {queries, plan.nearest})},
              {"distances", shape.array(shape.type, {queries, plan.nearest})}};
    case Wanted::kCounts: {
      const OutputSpec counts = {"counts", shape.array(v1::INT64, {queries})};
      if (sums) return {counts, {"sums", payload_shape(plan, queries)}};
      return {counts};
    }
    case Wanted::kLists:
      break;
  }
  return {{"offsets", {v1::INT64, {plan.all_queries() + 1}}},
          {"indices", {v1::INT64, {listed}}},
          {"distances", {shape.type, {listed}}}};
}

absl::StatusOr<KdTreeArraysShape> read_tree(std::span<const InputArray> inputs) {
  auto shape = KdTreeArraysShape::read(inputs[0]);
  if (!shape.ok()) return shape;
  const InputArray& nodes = inputs[2];
  const std::size_t extents = shape->batched ? 3 : 2;
  std::int64_t count = nodes.shape.extents.size() == extents ? nodes.shape.extents[extents - 2] : 0;
  int levels = 0;
  for (; count % 2 == 1; count /= 2) ++levels;
  if (count != 0 || levels < 1 || levels > kMaxKdTreeLevels) {
    return bad_field(nodes.field,
                     concat("is ", nodes.shape.text(),
                            "; UINT8 [nodes, 32], a result of BuildKdTree of 1, 3, 7, 15, ... nodes, "
                            "is right"));
  }
  shape->forest.levels = levels;
  const ArrayShape wanted[] = {shape->points(), shape->idx_array(), shape->node_data(), shape->node_bounds()};
  for (std::size_t i = 0; i < 4; ++i) {
    if (inputs[i].shape == wanted[i]) continue;
    return bad_field(inputs[i].field,
                     concat("is ", inputs[i].shape.text(), "; beside the tree's other arrays ",
                            wanted[i].text(), " is right"));
  }
  return shape;
}

absl::Status read_queries(std::span<const InputArray> inputs, FindNeighbors::Plan& plan) {
  const InputArray& queries = inputs[4];
  const auto& extents = queries.shape.extents;
  plan.search.queries = extents.size() >= 2 ? extents[extents.size() - 2] : 0;
  const ArrayShape wanted =
      plan.shape.array(plan.shape.type, {plan.search.queries, plan.shape.forest.dimensions});
  if (queries.shape != wanted) {
    return bad_field(queries.field,
                     concat("is ", queries.shape.text(), "; for this tree ",
                            element_type_name(plan.shape.type), plan.shape.batched ? " [trees, " : " [",
                            "queries, ", plan.shape.forest.dimensions, "] is right"));
  }
  if (!plan.has_radii) return absl::OkStatus();
  const ArrayShape radii = plan.shape.array(plan.shape.type, {plan.search.queries});
  if (inputs[5].shape == radii) return absl::OkStatus();
  return bad_field(inputs[5].field,
                   concat("is ", inputs[5].shape.text(), "; for these queries ", radii.text(), " is right"));
}

absl::Status read_lists(const v1::NeighborLists& lists, FindNeighbors::Plan& plan) {
  if (lists.max_neighbors() < 0) {
    return bad_field("lists.max_neighbors",
                     concat("is ", lists.max_neighbors(), "; 0, or the most neighbours of all queries ",
                            "together, is right"));
  }
  plan.wanted = Wanted::kLists;
  const std::int64_t queries = plan.all_queries();
  const std::int64_t points = plan.shape.forest.points;
  // Never more than each point for each query, a product that need not fit 64 bits.
  const bool all_fit = points == 0 || lists.max_neighbors() / points >= queries;
  plan.max_neighbors = all_fit ? queries * points : lists.max_neighbors();
  return absl::OkStatus();
}

absl::Status read_wanted(const FindNeighbors::Request& request, FindNeighbors::Plan& plan) {
  if (request.has_radius()) {
    if (!(request.radius() >= 0))
      return bad_field("radius", concat("is ", request.radius(), "; 0 or more is right"));
    if (plan.has_radii) return bad_field("radius", "is given, and `radii` too; one of them is right");
    plan.search.radius = request.radius();
  }
  switch (request.wanted_case()) {
    case FindNeighbors::Request::kNearest:
      if (request.nearest() < 1 || request.nearest() > kMaxNeighbors) {
        return bad_field("nearest", concat("is ", request.nearest(), "; 1 to ", kMaxNeighbors, " is right"));
      }
      plan.nearest = request.nearest();
      return absl::OkStatus();
    case FindNeighbors::Request::kCounts:
      plan.wanted = Wanted::kCounts;
      return absl::OkStatus();
    case FindNeighbors::Request::kLists:
      return read_lists(request.lists(), plan);
    case FindNeighbors::Request::WANTED_NOT_SET:
      break;
  }
  return bad_field("wanted", "is not set; `nearest`, `counts` or `lists` is right");
}

/// `payload` is the last input.
absl::Status read_payload(const FindNeighbors::Request& request, std::span<const InputArray> inputs,
                          FindNeighbors::Plan& plan) {
  if (!request.has_payload()) return absl::OkStatus();
  if (plan.wanted == Wanted::kLists) {
    return bad_field("payload", "is given, and `lists` too; it goes with `nearest` and `counts`");
  }
  const InputArray& payload = inputs.back();
  const auto& extents = payload.shape.extents;
  plan.has_channels = extents.size() == (plan.shape.batched ? 3u : 2u);
  plan.summed_channels = plan.has_channels ? extents.back() : 1;
  if (payload.shape == payload_shape(plan, plan.shape.forest.points) && plan.summed_channels > 0)
    return absl::OkStatus();
  const std::string trees = plan.shape.batched ? concat(plan.shape.forest.trees, ", ") : "";
  const std::string rows = concat(trees, plan.shape.forest.points);
  return bad_field(payload.field, concat("is ", payload.shape.text(), "; a row for each point, ",
                                         element_type_name(plan.shape.type), " [", rows, "] or [", rows,
                                         ", channels], is right"));
}

absl::Status read_period(const FindNeighbors::Request& request, FindNeighbors::Plan& plan) {
  if (request.period().empty()) return absl::OkStatus();
  if (request.period_size() != plan.shape.forest.dimensions) {
    return bad_field("period", concat("has ", request.period_size(), " elements; one for each of the tree's ",
                                      plan.shape.forest.dimensions, " dimensions, or none, is right"));
  }
  for (int axis = 0; axis < request.period_size(); ++axis) {
    const double period = request.period(axis);
    if (!(period >= 0) || period > kMaxPeriod) {
      return bad_field(concat("period[", axis, "]"),
                       concat("is ", period, "; 0, or a finite length, is right"));
    }
    plan.search.period[static_cast<std::size_t>(axis)] = period;
  }
  return absl::OkStatus();
}

absl::Status conclude_lists(const FindNeighbors::Plan& plan, std::int64_t listed) {
  if (plan.wanted != Wanted::kLists || listed <= plan.max_neighbors) return absl::OkStatus();
  return no_answer(
      "TOO_MANY_NEIGHBORS",
      concat("queries: they have ", listed,
             " neighbours within the radius; lists.max_neighbors makes room for ", plan.max_neighbors),
      {{"neighbors", concat(listed)}});
}

/// `number` counts the leaves of all trees.
absl::Status wrong_leaf(const FindNeighbors::Plan& plan, std::int64_t number) {
  const KdTreeShape& forest = plan.shape.forest;
  const std::int64_t leaves = forest.nodes() / 2 + 1;
  const std::int64_t tree = number / leaves;
  const std::int64_t node = forest.nodes() / 2 + number % leaves;
  return no_answer(
      "WRONG_TREE",
      concat("tree.node_data: ", plan.shape.batched ? concat("tree ", tree, ", ") : "", "node ", node,
             " is a leaf that does not begin where the one before it ends, or end within the ", forest.points,
             " points; the last leaf ends with them; arrays as BuildKdTree makes them are right"),
      {{"tree", concat(tree)}, {"node", concat(node)}});
}

template <class T, class E>
void run_sums(E& executor, const FindNeighbors::Plan& plan, const QueriedForest<T, E::kSpace>& forest,
              const Inputs<E::kSpace>& inputs, const Outputs<E::kSpace>& outputs, NeighborReport* report) {
  const auto rows = inputs.template as<const T>(plan.has_radii ? 6 : 5);
  if (plan.wanted == Wanted::kNearest) {
    sum_nearest(executor,
                NearestSumJob<T, E::kSpace>{forest,
                                            plan.nearest,
                                            {rows, outputs.template as<T>(0), plan.summed_channels},
                                            outputs.template as<T>(1)},
                report);
  } else {
    sum_within(executor,
               WithinSumJob<T, E::kSpace>{forest,
                                          {rows, outputs.template as<T>(1), plan.summed_channels},
                                          outputs.template as<std::int64_t>(0)},
               report);
  }
}

}  // namespace

std::int64_t FindNeighbors::Plan::all_queries() const { return shape.forest.trees * search.queries; }

std::vector<SourceField> FindNeighbors::sources(const Request& request) {
  std::vector<SourceField> fields = {{"tree.points", &request.tree().points()},
                                     {"tree.idx_array", &request.tree().idx_array()},
                                     {"tree.node_data", &request.tree().node_data()},
                                     {"tree.node_bounds", &request.tree().node_bounds()},
                                     {"queries", &request.queries()}};
  if (request.has_radii()) fields.push_back({"radii", &request.radii()});
  if (request.has_payload()) fields.push_back({"payload", &request.payload()});
  return fields;
}

absl::StatusOr<FindNeighbors::Plan> FindNeighbors::validate(const Request& request,
                                                            std::span<const InputArray> inputs) {
  const auto shape = read_tree(inputs);
  if (!shape.ok()) return shape.status();
  Plan plan;
  plan.shape = *shape;
  plan.has_radii = request.has_radii();
  plan.search.squared = request.squared();
  absl::Status status = read_queries(inputs, plan);
  if (status.ok()) status = read_wanted(request, plan);
  if (status.ok()) status = read_payload(request, inputs, plan);
  if (status.ok()) status = read_period(request, plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> FindNeighbors::outputs(const Plan& plan) { return arrays(plan, plan.max_neighbors); }

Cost FindNeighbors::cost(const Plan& plan) {
  // A point that a query looks at; and a node that it passes. How many points lie within a radius is not
  // known before: a leaf and its neighbours along each axis are taken, as of the nearest, and of lists the
  // room made.
  constexpr double kCoreSeconds = 12e-9;
  constexpr double kGpuSeconds = 0.02e-9;
  constexpr double kNodePoints = 8;
  const KdTreeShape& forest = plan.shape.forest;
  const double leaves = std::exp2(forest.levels - 1);
  const double leaf_points = static_cast<double>(forest.points) / leaves + 1;
  const double seen_leaves = std::min(leaves, std::exp2(std::min(forest.dimensions, 5)));
  const double wanted = plan.wanted == Wanted::kNearest ? plan.nearest : 1;
  const double summed = static_cast<double>(plan.summed_channels);
  const double a_search = kNodePoints * forest.levels + seen_leaves * leaf_points + (4 + summed) * wanted;
  // Within a radius, each four channels are a search of their own.
  const double searches = plan.wanted == Wanted::kCounts ? std::max(1.0, std::ceil(summed / 4)) : 1;
  const double a_query = searches * a_search;
  const double work = static_cast<double>(plan.all_queries()) * a_query;
  const double checked = static_cast<double>(forest.trees) * leaves;  // leaves
  return {(work + checked) * kCoreSeconds, (work + checked) * kGpuSeconds};
}

template <Space S>
std::size_t FindNeighbors::scratch_bytes(const Plan& plan) {
  if (plan.wanted == Wanted::kCounts) return count_within_scratch_bytes<S>(plan.shape.forest, plan.search);
  if (plan.wanted == Wanted::kLists) return list_within_scratch_bytes<S>(plan.shape.forest, plan.search);
  return plan.shape.with_type([&]<class T>(T) {
    if (plan.summed_channels > 0) {
      return sum_nearest_scratch_bytes<T, S>(plan.shape.forest, plan.search, plan.nearest);
    }
    return find_nearest_scratch_bytes<T, S>(plan.shape.forest, plan.search, plan.nearest);
  });
}

template <class E>
void FindNeighbors::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                        const Outputs<E::kSpace>& outputs, Report& report) {
  plan.shape.with_type([&]<class T>(T) {
    QueriedForest<T, E::kSpace> forest{
        plan.shape.forest,
        {inputs.template as<const T>(0), inputs.template as<const std::int64_t>(1),
         inputs.template as<const KdTreeNode>(2), inputs.template as<const T>(3)},
        {inputs.template as<const T>(4), {}},
        plan.search};
    if (plan.has_radii) forest.queries.radii = inputs.template as<const T>(5);
    if (plan.summed_channels > 0)
      return run_sums<T>(executor, plan, forest, inputs, outputs, &report.queries);
    const auto first = outputs.template as<std::int64_t>(0);
    switch (plan.wanted) {
      case Wanted::kNearest:
        return find_nearest(executor,
                            NearestJob<T, E::kSpace>{forest, plan.nearest, first, outputs.template as<T>(1)},
                            &report.queries);
      case Wanted::kCounts:
        return count_within(executor, CountJob<T, E::kSpace>{forest, first}, &report.queries);
      case Wanted::kLists:
        return list_within(executor,
                           ListJob<T, E::kSpace>{forest, first, outputs.template as<std::int64_t>(1),
                                                 outputs.template as<T>(2)},
                           &report);
    }
  });
}

absl::Status FindNeighbors::conclude(const Plan& plan, const Report& found) {
  using Fault = NeighborReport::Fault;
  const NeighborReport& report = found.queries;
  if (report.fault == Fault::kNone) return conclude_lists(plan, found.listed);
  if (report.fault == Fault::kTreeOutside) {
    return no_answer("OUTSIDE_PERIOD",
                     concat("tree.points: tree ", report.query, " has points outside of [0, period[",
                            report.axis, "]]; bring them into it before the build"),
                     {{"tree", concat(report.query)}, {"dimension", concat(report.axis)}});
  }
  if (report.fault == Fault::kLeaves) return wrong_leaf(plan, report.query);
  const std::int64_t tree = report.query / plan.search.queries;
  const std::int64_t query = report.query % plan.search.queries;
  const std::string place = concat(plan.shape.batched ? concat("tree ", tree, ", ") : "", "query ", query);
  std::map<std::string, std::string> metadata = {{"tree", concat(tree)}, {"query", concat(query)}};
  if (report.fault == Fault::kRadius) {
    return no_answer("INVALID_RADIUS",
                     concat("radii: ", place, ": the radius is NaN or negative; 0 or more is right"),
                     metadata);
  }
  metadata["dimension"] = concat(report.axis);
  if (report.fault == Fault::kNanCoordinate) {
    return no_answer("NAN_COORDINATE", concat("queries: ", place, ", dimension ", report.axis, " is NaN"),
                     metadata);
  }
  return no_answer("OUTSIDE_PERIOD",
                   concat("queries: ", place, ", dimension ", report.axis, " lies outside of [0, period[",
                          report.axis, "]]"),
                   metadata);
}

std::vector<ArrayShape> FindNeighbors::final_shapes(const Plan& plan, const Report& report) {
  std::vector<ArrayShape> shapes;
  for (OutputSpec& spec : arrays(plan, report.listed)) shapes.push_back(std::move(spec.shape));
  return shapes;
}

template std::size_t FindNeighbors::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t FindNeighbors::scratch_bytes<Space::kDevice>(const Plan&);
template void FindNeighbors::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                 const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void FindNeighbors::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                 const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

#include <memory>

#include "cumulus/cumulus.h"
#include "cumulus/kd_tree.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"
#include "library/c/handles.h"

namespace cumulus::c {
namespace {

static_assert(static_cast<int>(MapProjection::kLatLong) == CUMULUS_LAT_LONG &&
              static_cast<int>(MapProjection::kPlane) == CUMULUS_PLANE &&
              static_cast<int>(MapProjection::kEqualArea) == CUMULUS_EQUAL_AREA);
static_assert(static_cast<int>(ImageBoundary::kZero) == CUMULUS_ZERO &&
              static_cast<int>(ImageBoundary::kClamp) == CUMULUS_CLAMP &&
              static_cast<int>(ImageBoundary::kRepeat) == CUMULUS_REPEAT &&
              static_cast<int>(ImageBoundary::kReflect) == CUMULUS_REFLECT &&
              static_cast<int>(ImageBoundary::kMirror) == CUMULUS_MIRROR &&
              static_cast<int>(ImageBoundary::kExact) == CUMULUS_EXACT);

/// Runs an operation and hands its array `name` over.
Outcome run_for(const cumulus_connection& connection, const Operation& operation, const char* name,
                cumulus_buffer** output) {
  absl::StatusOr<Result> result = connection.session.run(operation);
  if (!result.ok()) return result.status();
  absl::StatusOr<Buffer> buffer = result->take_buffer(name);
  if (!buffer.ok()) return buffer.status();
  *output = new cumulus_buffer{*std::move(buffer)};
  return absl::OkStatus();
}

Outcome check_boundary(const char* name, cumulus_boundary boundary) {
  if (boundary >= CUMULUS_ZERO && boundary <= CUMULUS_EXACT) return absl::OkStatus();
  return refuse(name, "is no cumulus_boundary");
}

Outcome blur(const cumulus_connection& connection, const Buffer& image, const cumulus_blur_options& options,
             cumulus_buffer** blurred) {
  if (Outcome y = check_boundary("options.boundary_y", options.boundary_y); !y.ok()) return y;
  if (Outcome x = check_boundary("options.boundary_x", options.boundary_x); !x.ok()) return x;
  const GaussianKernel kernel{.sigma = options.sigma};
  const AxisKernel y{kernel, static_cast<ImageBoundary>(options.boundary_y)};
  const AxisKernel x{kernel, static_cast<ImageBoundary>(options.boundary_x)};
  return run_for(connection, apply_recursive_filter(image, {.y = y, .x = x}), "image", blurred);
}

Outcome build_tree(const cumulus_connection& connection, const Buffer& points, cumulus_kd_tree** tree) {
  absl::StatusOr<Result> result = connection.session.run(build_kd_tree(points));
  if (!result.ok()) return result.status();
  absl::StatusOr<Buffer> ordered = result->take_buffer("points");
  if (!ordered.ok()) return ordered.status();
  absl::StatusOr<Buffer> idx_array = result->take_buffer("idx_array");
  if (!idx_array.ok()) return idx_array.status();
  absl::StatusOr<Buffer> node_data = result->take_buffer("node_data");
  if (!node_data.ok()) return node_data.status();
  absl::StatusOr<Buffer> node_bounds = result->take_buffer("node_bounds");
  if (!node_bounds.ok()) return node_bounds.status();
  *tree = new cumulus_kd_tree{*std::move(ordered), *std::move(idx_array), *std::move(node_data),
                              *std::move(node_bounds)};
  return absl::OkStatus();
}

Outcome nearest_of(const cumulus_connection& connection, const cumulus_kd_tree& tree, const Buffer& queries,
                   int32_t nearest, cumulus_neighbors& neighbors) {
  absl::StatusOr<Result> result = connection.session.run(
      find_nearest({tree.points, tree.idx_array, tree.node_data, tree.node_bounds}, queries, nearest));
  if (!result.ok()) return result.status();
  absl::StatusOr<Buffer> indices = result->take_buffer("indices");
  if (!indices.ok()) return indices.status();
  absl::StatusOr<Buffer> distances = result->take_buffer("distances");
  if (!distances.ok()) return distances.status();
  auto first = std::make_unique<cumulus_buffer>(*std::move(indices));
  neighbors.distances = new cumulus_buffer{*std::move(distances)};
  neighbors.indices = first.release();
  return absl::OkStatus();
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_build_sampling_table(cumulus_connection* connection, const cumulus_buffer* weights,
                                          cumulus_projection projection, cumulus_buffer** table,
                                          cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"connection", connection}, {"weights", weights}, {"table", table}});
    if (table != nullptr) *table = nullptr;
    if (!given.ok()) return given;
    if (projection < CUMULUS_LAT_LONG || projection > CUMULUS_EQUAL_AREA) {
      return cumulus::c::refuse("projection", "is no cumulus_projection");
    }
    cumulus::SamplingTableOptions options;
    options.projection = static_cast<cumulus::MapProjection>(projection);
    return cumulus::c::run_for(*connection, cumulus::build_sampling_table(weights->buffer, options), "table",
                               table);
  });
}

cumulus_code cumulus_gaussian_blur(cumulus_connection* connection, const cumulus_buffer* image,
                                   const cumulus_blur_options* options, cumulus_buffer** blurred,
                                   cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require(
        {{"connection", connection}, {"image", image}, {"options", options}, {"blurred", blurred}});
    if (blurred != nullptr) *blurred = nullptr;
    return given.ok() ? cumulus::c::blur(*connection, image->buffer, *options, blurred) : given;
  });
}

cumulus_code cumulus_build_summed_area_table(cumulus_connection* connection, const cumulus_buffer* image,
                                             cumulus_buffer** sums, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"connection", connection}, {"image", image}, {"sums", sums}});
    if (sums != nullptr) *sums = nullptr;
    if (!given.ok()) return given;
    return cumulus::c::run_for(*connection, cumulus::build_summed_area_table(image->buffer), "sums", sums);
  });
}

cumulus_code cumulus_build_kd_tree(cumulus_connection* connection, const cumulus_buffer* points,
                                   cumulus_kd_tree** tree, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"connection", connection}, {"points", points}, {"tree", tree}});
    if (tree != nullptr) *tree = nullptr;
    return given.ok() ? cumulus::c::build_tree(*connection, points->buffer, tree) : given;
  });
}

void cumulus_kd_tree_release(cumulus_kd_tree* tree) { delete tree; }

cumulus_code cumulus_find_nearest(cumulus_connection* connection, const cumulus_kd_tree* tree,
                                  const cumulus_buffer* queries, int32_t nearest,
                                  cumulus_neighbors* neighbors, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require(
        {{"connection", connection}, {"tree", tree}, {"queries", queries}, {"neighbors", neighbors}});
    if (neighbors != nullptr) *neighbors = {nullptr, nullptr};
    if (!given.ok()) return given;
    return cumulus::c::nearest_of(*connection, *tree, queries->buffer, nearest, *neighbors);
  });
}

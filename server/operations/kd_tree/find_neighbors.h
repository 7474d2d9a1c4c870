#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/kd_tree.pb.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "server/operations/kd_tree/arrays.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct FindNeighbors {
  using Request = v1::FindNeighborsRequest;
  using Report = NeighborListReport;
  enum class Wanted { kNearest, kCounts, kLists };
  struct Plan {
    KdTreeArraysShape shape;
    NeighborSearch search;
    Wanted wanted = Wanted::kNearest;
    int nearest = 0;
    std::int64_t max_neighbors = 0;  // of all lists together
    bool has_radii = false;
    std::int64_t summed_channels = 0;  // of the payload; 0: there is none
    bool has_channels = false;         // the payload is [points, channels], else [points]

    std::int64_t all_queries() const;
  };
  static constexpr std::string_view kName = "FindNeighbors";

  static std::vector<SourceField> sources(const Request& request);
  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs);
  static std::vector<OutputSpec> outputs(const Plan& plan);
  static Cost cost(const Plan& plan);
  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan);
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report);
  static absl::Status conclude(const Plan& plan, const Report& report);
  static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report);
};

}  // namespace cumulus::server::ops

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/kd_tree.pb.h"
#include "kernels/kd_tree/kd_tree.h"
#include "server/operations/kd_tree/arrays.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct BuildKdTree {
  using Request = v1::BuildKdTreeRequest;
  using Report = KdTreeReport;
  struct Plan {
    KdTreeArraysShape shape;
    KdTreeOptions options;
    bool left_balanced = false;
    ArrayShape payload;  // where has_payload
    bool has_payload = false;

    std::int64_t row_bytes() const;
  };
  static constexpr std::string_view kName = "BuildKdTree";

  static std::vector<SourceField> sources(const Request& request);
  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs);
  static std::vector<OutputSpec> outputs(const Plan& plan);
  static Cost cost(const Plan& plan);
  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan, const DeviceNumbers& device);
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report);
  static absl::Status conclude(const Plan& plan, const Report& report);
};

}  // namespace cumulus::server::ops

#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/sampling_table.pb.h"
#include "kernels/sampling_table/sampling_table.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct BuildSamplingTable {
  using Request = v1::BuildSamplingTableRequest;
  using Report = SamplingTableReport;
  struct Plan {
    ImageShape weights;  // the rows of all layers
    SamplingTableParams params;
  };
  static constexpr std::string_view kName = "BuildSamplingTable";

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
};

}  // namespace cumulus::server::ops

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/sampling_table.pb.h"
#include "kernels/sampling_table/sampling_table.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct EvaluateDensity {
  using Request = v1::EvaluateDensityRequest;
  using Report = NoReport;
  struct Plan {
    sampling::TableHeader header;
    std::int64_t count = 0;
    int dimensions = 2;
    std::uint32_t layer = 0;
  };
  static constexpr std::string_view kName = "EvaluateDensity";

  static std::vector<SourceField> sources(const Request& request);
  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs);
  static std::vector<OutputSpec> outputs(const Plan& plan);
  static Cost cost(const Plan& plan);
  template <Space S>
  static std::size_t scratch_bytes(const Plan& /*plan*/) {
    return 0;
  }
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report);
  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }
};

}  // namespace cumulus::server::ops

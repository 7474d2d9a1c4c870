#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/run_length.pb.h"
#include "kernels/run_length/run_length.h"
#include "server/operations/run_length/arrays.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct EncodeRunLengths {
  using Request = v1::EncodeRunLengthsRequest;
  using Report = EncodeRunLengthsReport;
  struct Plan {
    RunUnit unit;
    std::optional<ImageBatch> by_columns;  // none: by rows
    bool pieces = false;                   // lines or images, whose first runs are wanted
    EncodeRunLengthsParams params;
  };
  static constexpr std::string_view kName = "EncodeRunLengths";

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
  static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report);
};

}  // namespace cumulus::server::ops

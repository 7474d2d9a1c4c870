#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/summed_area_table/queries.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/non_finite.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct FilterBox {
  using Request = v1::FilterBoxRequest;
  using Report = NonFinite;
  struct Plan {
    ImageShape image;
    BoxShape box;
    bool has_map = false;
    bool deviation = false;
    NonFinitePolicy non_finite = NonFinitePolicy::kRefuse;
  };
  static constexpr std::string_view kName = "FilterBox";

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

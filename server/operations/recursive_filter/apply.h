#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/recursive_filter.pb.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/normalize.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/non_finite.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct ApplyRecursiveFilter {
  using Request = v1::ApplyRecursiveFilterRequest;
  struct Report {
    std::int32_t method;  // a v1::RecursiveFilterMethod
    double truncation_bound;
    std::int64_t tiles;          // of the image
    std::int64_t tiles_on_chip;  // fewer: the image does not fit
    NonFinite non_finite;
  };
  struct Plan {
    ArrayShape shape;  // of the input and of the output
    ImageShape image;  // each
    std::int64_t images = 1;
    RecursiveFilter filter;
    std::optional<FirBlur> fir;                      // in place of `filter`
    std::optional<FilteredCertainties> certainties;  // where an axis has FILTER_EXACT
    bool accumulates = false;
    double weight = 1;
    RecursiveFilterChoice choice;  // its error of what is divided by the certainties
    bool tells_method = false;
    NonFinitePolicy non_finite = NonFinitePolicy::kRefuse;
  };
  static constexpr std::string_view kName = "ApplyRecursiveFilter";
  static constexpr bool kKeepsPlans = true;  // filters are designed in 5 to 30 us

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

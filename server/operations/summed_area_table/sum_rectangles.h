#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/summed_area_table/queries.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct SumRectangles {
  using Request = v1::SumRectanglesRequest;
  using Report = RectangleReport;
  struct Plan {
    ImageShape table;
    std::int64_t count = 0;
    bool exclusive = false;
    bool refuse = false;
    // Where inputs and outputs stand among those of the call; unset: absent.
    std::optional<std::size_t> squares;
    std::optional<std::size_t> offsets;
    std::optional<std::size_t> above;
    std::optional<std::size_t> left;
    std::size_t rectangles = 0;
    std::vector<v1::RectangleStatistic> statistics;

    /// Without the table's border.
    TableShape image() const;
  };
  static constexpr std::string_view kName = "SumRectangles";

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

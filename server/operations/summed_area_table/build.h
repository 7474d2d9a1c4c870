#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cumulus/v1/summed_area_table.pb.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct BuildSummedAreaTable {
  using Request = v1::BuildSummedAreaTableRequest;
  using Report = NoReport;
  struct Plan {
    ImageShape image;  // of one image, without padding
    std::int64_t row_stride = 0;
    std::int64_t planes = 1;
    v1::ElementType accumulator = v1::ELEMENT_TYPE_UNSPECIFIED;
    bool planar = false;
    bool exclusive = false;
    bool squares = false;
    bool offsets = false;  // MEAN_SUBTRACTED_SUMS
    bool local = false;    // TILE_LOCAL_SUMS
  };
  static constexpr std::string_view kName = "BuildSummedAreaTable";

  static std::vector<SourceField> sources(const Request& request);
  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs);
  static std::vector<OutputSpec> outputs(const Plan& plan);
  static Cost cost(const Plan& plan);
  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan, const DeviceNumbers& device);
  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report);
  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }
};

}  // namespace cumulus::server::ops

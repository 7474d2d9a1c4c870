#pragma once

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct BuildSummedAreaTable {
  using Request = v1::BuildSummedAreaTableRequest;
  using Report = NoReport;
  struct Plan {
    ImageShape image;
    v1::ElementType accumulator;
  };
  static constexpr std::string_view kName = "BuildSummedAreaTable";

  static std::vector<SourceField> sources(const Request& request) { return {{"image", &request.image()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    const auto image = read_image_shape(inputs[0], {v1::UINT8, v1::FLOAT32}, 4);
    if (!image.ok()) return image.status();
    const auto accumulator = choose_accumulator(image->type, request.accumulator());
    if (!accumulator.ok()) return accumulator.status();
    if (*accumulator == v1::UINT32 && !fits_32_bits(*image)) {
      return bad_field("accumulator", absl::StrCat("is UINT32, which ", image->height, " x ", image->width,
                                                   " pixels of 255 overflow; UINT64 is right"));
    }
    return Plan{*image, *accumulator};
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"sums", plan.image.array(plan.accumulator)}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return with_types(plan, [&]<class Input, class Sum>(Input*, Sum*) {
      return build_summed_area_table_scratch_bytes(plan.image.view(Span<const Input, S>()),
                                                   plan.image.view(Span<Sum, S>()));
    });
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    with_types(plan, [&]<class Input, class Sum>(Input*, Sum*) {
      build_summed_area_table(executor, plan.image.view(inputs.template as<const Input>(0)),
                              plan.image.view(outputs.template as<Sum>(0)));
      return std::size_t{0};
    });
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
  static bool fits_32_bits(const ImageShape& image) {
    return image.height <= std::numeric_limits<std::uint32_t>::max() / 255 / image.width;
  }

  static absl::StatusOr<v1::ElementType> choose_accumulator(v1::ElementType image, v1::ElementType asked) {
    const auto [usual, other] =
        image == v1::UINT8 ? std::pair(v1::UINT32, v1::UINT64) : std::pair(v1::FLOAT64, v1::FLOAT32);
    if (asked == v1::ELEMENT_TYPE_UNSPECIFIED || asked == usual) return usual;
    if (asked == other) return other;
    return bad_field(
        "accumulator",
        absl::StrCat("is ", element_type_name(asked), "; for ", element_type_name(image), " images ",
                     element_type_name(usual), " or ", element_type_name(other), " is right"));
  }

  template <class T>
  static constexpr T* null = nullptr;

  /// Calls `body` with null pointers of the plan's input and sum types.
  template <class Body>
  static std::size_t with_types(const Plan& plan, const Body& body) {
    if (plan.accumulator == v1::UINT32) return body(null<std::uint8_t>, null<std::uint32_t>);
    if (plan.accumulator == v1::UINT64) return body(null<std::uint8_t>, null<std::uint64_t>);
    if (plan.accumulator == v1::FLOAT64) return body(null<float>, null<double>);
    return body(null<float>, null<float>);
  }
};

struct FilterBox {
  using Request = v1::FilterBoxRequest;
  using Report = NoReport;
  struct Plan {
    ImageShape image;
    std::int64_t radius;
  };
  static constexpr std::string_view kName = "FilterBox";

  static std::vector<SourceField> sources(const Request& request) { return {{"image", &request.image()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    const auto image = read_image_shape(inputs[0], {v1::UINT8, v1::FLOAT32}, 4);
    if (!image.ok()) return image.status();
    const std::int64_t largest = std::max(image->height, image->width);
    if (request.radius() < 0 || request.radius() > largest) {
      return bad_field("radius", absl::StrCat("is ", request.radius(), "; 0 to ", largest,
                                              ", the larger of the image's width and height, is right"));
    }
    return Plan{*image, request.radius()};
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"image", plan.image.array(v1::FLOAT32)}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    const auto filtered = plan.image.view(Span<float, S>());
    if (plan.image.type == v1::UINT8) {
      return filter_box_scratch_bytes(plan.image.view(Span<const std::uint8_t, S>()), plan.radius, filtered);
    }
    return filter_box_scratch_bytes(plan.image.view(Span<const float, S>()), plan.radius, filtered);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    const auto filtered = plan.image.view(outputs.template as<float>(0));
    if (plan.image.type == v1::UINT8) {
      filter_box(executor, plan.image.view(inputs.template as<const std::uint8_t>(0)), plan.radius, filtered);
    } else {
      filter_box(executor, plan.image.view(inputs.template as<const float>(0)), plan.radius, filtered);
    }
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }
};

}  // namespace cumulus::server::ops

#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/summed_area_table/local.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "server/operations/summed_area_table_queries.h"  // the other RPCs of this operation
#include "server/operations/summed_area_table_types.h"
#include "server/pipeline/errors.h"
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

  static std::vector<SourceField> sources(const Request& request) { return {{"image", &request.image()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    Plan plan;
    plan.planar = request.planar();
    plan.exclusive = request.exclusive();
    plan.squares = request.squares();
    absl::Status status = read_images(inputs[0], request, plan);
    if (status.ok()) status = read_precision(request, plan);
    if (status.ok()) status = read_accumulator(request, plan);
    if (status.ok()) status = check_overflow(request, plan);
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    ImageShape table = plan.image;
    table.height += plan.exclusive ? 1 : 0;
    table.width += plan.exclusive ? 1 : 0;
    const auto array = [&plan](ArrayShape one) {
      if (plan.planar) one.extents.insert(one.extents.begin(), plan.planes);
      return one;
    };
    std::vector<OutputSpec> specs = {{"sums", array(table.array(plan.accumulator))}};
    if (plan.squares) specs.push_back({"squares", array(table.array(plan.accumulator))});
    if (plan.offsets) specs.push_back({"offsets", array({v1::FLOAT32, {plan.image.channels}})});
    if (plan.local) {
      const std::int64_t tile_rows = local_tile_rows(plan.image.height);
      const std::int64_t tile_columns = local_tile_columns(plan.image.width);
      specs.push_back({"above", {v1::FLOAT64, {tile_rows + 1, plan.image.width + 1, plan.image.channels}}});
      specs.push_back(
          {"left", {v1::FLOAT64, {tile_rows, kLocalTileRows + 1, tile_columns + 1, plan.image.channels}}});
    }
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
    return with_table_types(plan.image.type, plan.accumulator, [&]<class Input, class Sum>(Input*, Sum*) {
      auto job = table_job<Input, Sum, S>(plan, nullptr, nullptr);
      if constexpr (kSingle<Input, Sum>) {
        if (plan.local) {
          return build_local_summed_area_table_scratch_bytes(LocalTableJob<Input, S>{job.image, job.sums},
                                                             device);
        }
      }
      auto shape = summed_area_table::build_shape(job);
      shape.squares = plan.squares;
      shape.offsets = plan.offsets;
      std::size_t bytes = summed_area_table::table_scratch_bytes<S>(shape, device);
      if constexpr (kSingle<Input, Sum>) {
        if (plan.offsets) bytes += average_image_scratch_bytes(job);
      }
      return bytes;
    });
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    with_table_types(plan.image.type, plan.accumulator, [&]<class Input, class Sum>(Input*, Sum*) {
      auto job = table_job<Input, Sum, E::kSpace>(plan, inputs.template as<const Input>(0).data(),
                                                  outputs.template as<Sum>(0).data());
      if (plan.squares) job.squares = outputs.template as<Sum>(1).data();
      if constexpr (kSingle<Input, Sum>) {
        if (plan.local) {
          build_local_summed_area_table(
              executor,
              LocalTableJob<Input, E::kSpace>{job.image, job.sums, outputs.template as<double>(1).data(),
                                              outputs.template as<double>(2).data()});
          return std::size_t{0};
        }
        if (plan.offsets) {
          const auto offsets = outputs.template as<float>(1);
          average_image(executor, job, offsets);
          executor.check_interrupt();
          job.offsets = offsets.data();
        }
      }
      build_summed_area_table(executor, job);
      return std::size_t{0};
    });
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
  /// The pairs that there are offsets and tile-local tables for.
  template <class Input, class Sum>
  static constexpr bool kSingle = std::is_same_v<Sum, float>;

  /// Of the images and their sums alone.
  template <class Input, class Sum, Space S>
  static TableJob<Input, Sum, S> table_job(const Plan& plan, const Input* pixels, Sum* sums) {
    const std::int64_t border = plan.exclusive ? 1 : 0;
    TableJob<Input, Sum, S> job;
    job.image = {pixels, plan.image.height, plan.image.width, plan.image.channels, plan.row_stride};
    job.sums = {sums, plan.image.height + border, plan.image.width + border, plan.image.channels};
    job.planes = plan.planes;
    job.plane_stride = plan.image.height * plan.row_stride;
    job.exclusive = plan.exclusive;
    return job;
  }

  static absl::Status read_images(const InputArray& input, const Request& request, Plan& plan) {
    InputArray image = input;
    plan.planes = 1;
    if (plan.planar) {
      auto& extents = image.shape.extents;
      if (extents.size() < 3 || extents.front() < 1) {
        return bad_field("image", absl::StrCat("is ", input.shape.text(),
                                               "; with planar, [images, height, width] or [images, height, "
                                               "width, channels] of at least one image is right"));
      }
      plan.planes = extents.front();
      extents.erase(extents.begin());
    }
    const auto shape = read_image_shape(image, kTableInputs, 4);
    if (!shape.ok()) return shape.status();
    plan.image = *shape;
    plan.row_stride = shape->width * shape->channels;
    if (request.width() < 0 || request.width() > shape->width) {
      return bad_field("width", absl::StrCat("is ", request.width(), "; 0 to ", shape->width,
                                             ", the columns that the image has, is right"));
    }
    if (request.width() > 0) plan.image.width = request.width();
    return absl::OkStatus();
  }

  static absl::Status read_precision(const Request& request, Plan& plan) {
    switch (request.precision()) {
      case v1::SUM_PRECISION_UNSPECIFIED:
      case v1::PLAIN_SUMS:
        return absl::OkStatus();
      case v1::MEAN_SUBTRACTED_SUMS:
        plan.offsets = true;
        break;
      case v1::TILE_LOCAL_SUMS:
        plan.local = true;
        break;
      default:
        return bad_field("precision",
                         absl::StrCat("is ", static_cast<int>(request.precision()),
                                      "; PLAIN_SUMS, MEAN_SUBTRACTED_SUMS or TILE_LOCAL_SUMS is right"));
    }
    const std::string name = v1::SumPrecision_Name(request.precision());
    if (plan.image.type != v1::FLOAT32 && plan.image.type != v1::FLOAT16) {
      return bad_field("precision", absl::StrCat("is ", name, "; for ", element_type_name(plan.image.type),
                                                 " images PLAIN_SUMS is right"));
    }
    if (plan.squares) return bad_field("squares", absl::StrCat("are not offered with ", name));
    if (plan.local && (plan.planar || plan.exclusive)) {
      return bad_field(plan.planar ? "planar" : "exclusive", "is not offered with TILE_LOCAL_SUMS");
    }
    return absl::OkStatus();
  }

  static absl::Status read_accumulator(const Request& request, Plan& plan) {
    const TableType& type = table_type(plan.image.type);
    const std::string images = element_type_name(plan.image.type);
    if (plan.squares && !type.squares) {
      return bad_field("squares",
                       absl::StrCat("of ", images,
                                    " pixels have no room for sums in 64 bits; UINT8, UINT16 or float "
                                    "images are right"));
    }
    const bool single = plan.offsets || plan.local;
    const v1::ElementType usual = plan.squares ? type.wide : single ? v1::FLOAT32 : type.usual;
    const v1::ElementType other = plan.squares || single ? usual : type.other;
    plan.accumulator = request.accumulator() == v1::ELEMENT_TYPE_UNSPECIFIED ? usual : request.accumulator();
    if (plan.accumulator == usual || plan.accumulator == other) return absl::OkStatus();
    return bad_field(
        "accumulator",
        absl::StrCat("is ", element_type_name(plan.accumulator), "; for ", images, " images ",
                     plan.squares ? "with squares " : "",
                     single ? absl::StrCat("of ", v1::SumPrecision_Name(request.precision()), " ") : "",
                     element_type_name(usual),
                     other != usual ? absl::StrCat(" or ", element_type_name(other)) : "", " is right"));
  }

  static absl::Status check_overflow(const Request& request, const Plan& plan) {
    switch (request.overflow()) {
      case v1::SUM_OVERFLOW_UNSPECIFIED:
      case v1::REFUSE_OVERFLOW:
        break;
      case v1::WRAP_OVERFLOW:
        return absl::OkStatus();
      default:
        return bad_field("overflow", absl::StrCat("is ", static_cast<int>(request.overflow()),
                                                  "; REFUSE_OVERFLOW or WRAP_OVERFLOW is right"));
    }
    const TableType& type = table_type(plan.image.type);
    if (type.largest == 0) return absl::OkStatus();  // floats
    const std::uint64_t most = plan.accumulator == v1::UINT32  ? std::numeric_limits<std::uint32_t>::max()
                               : plan.accumulator == v1::INT64 ? std::numeric_limits<std::int64_t>::max()
                                                               : std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t largest = plan.squares ? type.largest * type.largest : type.largest;
    if (static_cast<std::uint64_t>(plan.image.height) <=
        most / largest / static_cast<std::uint64_t>(plan.image.width)) {
      return absl::OkStatus();
    }
    return bad_field(plan.squares ? "squares" : "accumulator",
                     absl::StrCat(plan.squares ? "go into " : "is ", element_type_name(plan.accumulator),
                                  ", which ", plan.image.height, " x ", plan.image.width, " pixels of ",
                                  largest, " overflow; ", plan.accumulator == v1::UINT32 ? "UINT64, or " : "",
                                  "overflow WRAP_OVERFLOW, is right"));
  }
};

}  // namespace cumulus::server::ops

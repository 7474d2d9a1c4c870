#pragma once

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cumulus/v1/summed_area_table.pb.h"
#include "kernels/summed_area_table/queries.h"
#include "server/operations/summed_area_table_types.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

// What finished tables are for: SumRectangles and FilterBox.

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
  };
  static constexpr std::string_view kName = "SumRectangles";

  static std::vector<SourceField> sources(const Request& request) {
    std::vector<SourceField> fields = {{"sums", &request.sums()}};
    if (request.has_squares()) fields.push_back({"squares", &request.squares()});
    if (request.has_offsets()) fields.push_back({"offsets", &request.offsets()});
    if (request.has_above()) fields.push_back({"above", &request.above()});
    if (request.has_left()) fields.push_back({"left", &request.left()});
    fields.push_back({"rectangles", &request.rectangles()});
    return fields;
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    Plan plan;
    plan.exclusive = request.exclusive();
    std::size_t next = 1;
    if (request.has_squares()) plan.squares = next++;
    if (request.has_offsets()) plan.offsets = next++;
    if (request.has_above()) plan.above = next++;
    if (request.has_left()) plan.left = next++;
    plan.rectangles = next;
    absl::Status status = read_table(inputs, plan);
    if (status.ok()) status = read_bases(inputs, plan);
    if (status.ok()) status = read_rectangles(inputs[plan.rectangles], plan);
    if (status.ok()) status = read_statistics(request, plan);
    if (status.ok()) status = read_border(request, plan);
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    std::vector<OutputSpec> specs;
    for (const v1::RectangleStatistic statistic : plan.statistics) {
      const bool sum = statistic == v1::RECTANGLE_SUM;
      ArrayShape shape{sum ? plan.table.type : v1::FLOAT64, {plan.count}};
      if (plan.table.has_channels) shape.extents.push_back(plan.table.channels);
      specs.push_back({sum                               ? "sums"
                       : statistic == v1::RECTANGLE_MEAN ? "means"
                                                         : "variances",
                       std::move(shape)});
    }
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    static constexpr Report kAny{};
    return sum_rectangles_scratch_bytes<S>(plan.refuse ? &kAny : nullptr);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    with_sum_type(plan.table.type, [&]<class Sum>(Sum*) {
      const std::int64_t border = plan.exclusive ? 1 : 0;
      TableView<Sum, E::kSpace> table{
          {plan.table.height - border, plan.table.width - border, plan.table.channels, plan.exclusive},
          inputs.template as<const Sum>(0).data()};
      if (plan.squares) table.squares = inputs.template as<const Sum>(*plan.squares).data();
      if (plan.offsets) table.offsets = inputs.template as<const float>(*plan.offsets).data();
      if (plan.above) {
        table.above = inputs.template as<const double>(*plan.above).data();
        table.left = inputs.template as<const double>(*plan.left).data();
      }
      RectangleResults<Sum, E::kSpace> results;
      for (std::size_t i = 0; i < plan.statistics.size(); ++i) {
        switch (plan.statistics[i]) {
          case v1::RECTANGLE_MEAN:
            results.means = outputs.template as<double>(i).data();
            break;
          case v1::RECTANGLE_VARIANCE:
            results.variances = outputs.template as<double>(i).data();
            break;
          default:
            results.sums = outputs.template as<Sum>(i).data();
        }
      }
      const auto rectangles = inputs.template as<const Rectangle>(plan.rectangles);
      sum_rectangles(executor, table, rectangles, results, plan.refuse ? &report : nullptr);
    });
  }

  static absl::Status conclude(const Plan& plan, const Report& report) {
    if (!plan.refuse || report.first_outside < 0) return absl::OkStatus();
    const std::int64_t border = plan.exclusive ? 1 : 0;
    return no_answer(
        "RECTANGLE_OUTSIDE",
        absl::StrCat("rectangles: number ", report.first_outside, " is empty or reaches beyond the image of ",
                     plan.table.height - border, " x ", plan.table.width - border,
                     " pixels; with CLIP_RECTANGLES it is clipped"),
        {{"rectangle", absl::StrCat(report.first_outside)}});
  }

 private:
  static absl::Status read_table(std::span<const InputArray> inputs, Plan& plan) {
    const auto table = read_image_shape(inputs[0], kTableSums, 4);
    if (!table.ok()) return table.status();
    plan.table = *table;
    const std::int64_t least = plan.exclusive ? 2 : 1;
    if (table->height < least || table->width < least) {
      return bad_field("sums", absl::StrCat("is ", inputs[0].shape.text(),
                                            "; an exclusive table has at least 2 rows and 2 columns"));
    }
    if (plan.squares && (inputs[*plan.squares].shape.type != table->type ||
                         inputs[*plan.squares].shape.extents != inputs[0].shape.extents)) {
      return bad_field("squares", absl::StrCat("is ", inputs[*plan.squares].shape.text(), "; as the sums, ",
                                               inputs[0].shape.text(), ", is right"));
    }
    if (plan.offsets && (table->type != v1::FLOAT32 || inputs[*plan.offsets].shape.type != v1::FLOAT32 ||
                         inputs[*plan.offsets].shape.extents != std::vector<std::int64_t>{table->channels})) {
      return bad_field("offsets", absl::StrCat("is ", inputs[*plan.offsets].shape.text(), "; FLOAT32 [",
                                               table->channels, "] with FLOAT32 sums is right"));
    }
    return absl::OkStatus();
  }

  /// The bases of a tile-local table: both or neither.
  static absl::Status read_bases(std::span<const InputArray> inputs, const Plan& plan) {
    if (!plan.above && !plan.left) return absl::OkStatus();
    if (!plan.above || !plan.left)
      return bad_field(plan.above ? "left" : "above", "is missing; a tile-local table has both");
    const auto& [type, height, width, channels, has_channels] = plan.table;
    if (type != v1::FLOAT32 || plan.exclusive || plan.squares || plan.offsets) {
      return bad_field(
          "above",
          "is set; it goes with inclusive FLOAT32 sums of TILE_LOCAL_SUMS, without squares and offsets");
    }
    const ArrayShape above{v1::FLOAT64, {local_tile_rows(height) + 1, width + 1, channels}};
    const ArrayShape left{
        v1::FLOAT64, {local_tile_rows(height), kLocalTileRows + 1, local_tile_columns(width) + 1, channels}};
    absl::Status status = expect_shape(inputs[*plan.above], above);
    if (status.ok()) status = expect_shape(inputs[*plan.left], left);
    return status;
  }

  static absl::Status expect_shape(const InputArray& input, const ArrayShape& right) {
    if (input.shape.type == right.type && input.shape.extents == right.extents) return absl::OkStatus();
    return bad_field(input.field, absl::StrCat("is ", input.shape.text(), "; with these sums ", right.text(),
                                               " is right"));
  }

  static absl::Status read_rectangles(const InputArray& input, Plan& plan) {
    const auto& [type, extents] = input.shape;
    if (type != v1::INT32 || extents.size() != 2 || extents[1] != 4) {
      return bad_field("rectangles",
                       absl::StrCat("is ", input.shape.text(),
                                    "; INT32 [count, 4], top, left, bottom and right, is right"));
    }
    plan.count = extents[0];
    return absl::OkStatus();
  }

  static absl::Status read_statistics(const Request& request, Plan& plan) {
    if (request.statistics().empty()) plan.statistics = {v1::RECTANGLE_SUM};
    for (int i = 0; i < request.statistics_size(); ++i) {
      const v1::RectangleStatistic statistic = request.statistics(i);
      const std::string field = absl::StrCat("statistics[", i, "]");
      if (statistic != v1::RECTANGLE_SUM && statistic != v1::RECTANGLE_MEAN &&
          statistic != v1::RECTANGLE_VARIANCE) {
        return bad_field(field,
                         absl::StrCat("is ", static_cast<int>(statistic),
                                      "; RECTANGLE_SUM, RECTANGLE_MEAN or RECTANGLE_VARIANCE is right"));
      }
      if (std::count(plan.statistics.begin(), plan.statistics.end(), statistic) != 0)
        return bad_field(field, "comes a second time; each statistic once is right");
      plan.statistics.push_back(statistic);
    }
    const bool variances =
        std::count(plan.statistics.begin(), plan.statistics.end(), v1::RECTANGLE_VARIANCE) != 0;
    if (variances && !plan.squares)
      return bad_field("squares", "is missing; variances need the table of squares beside the sums");
    if (variances && plan.offsets)
      return bad_field("offsets", "is set; variances are of tables that were built with PLAIN_SUMS");
    return absl::OkStatus();
  }

  static absl::Status read_border(const Request& request, Plan& plan) {
    switch (request.border()) {
      case v1::RECTANGLE_BORDER_UNSPECIFIED:
      case v1::CLIP_RECTANGLES:
        plan.refuse = false;
        return absl::OkStatus();
      case v1::REFUSE_RECTANGLES:
        plan.refuse = true;
        return absl::OkStatus();
      default:
        return bad_field("border", absl::StrCat("is ", static_cast<int>(request.border()),
                                                "; CLIP_RECTANGLES or REFUSE_RECTANGLES is right"));
    }
  }
};

struct FilterBox {
  using Request = v1::FilterBoxRequest;
  using Report = NoReport;
  struct Plan {
    ImageShape image;
    BoxShape box;
    bool has_map = false;
    bool deviation = false;
  };
  static constexpr std::string_view kName = "FilterBox";

  static std::vector<SourceField> sources(const Request& request) {
    std::vector<SourceField> fields = {{"image", &request.image()}};
    if (request.has_radius_map()) fields.push_back({"radius_map", &request.radius_map()});
    return fields;
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    const auto image = read_image_shape(inputs[0], kTableInputs, 4);
    if (!image.ok()) return image.status();
    Plan plan;
    plan.image = *image;
    plan.has_map = request.has_radius_map();
    plan.deviation = request.deviation();
    if (plan.deviation && !table_type(image->type).squares) {
      return bad_field("deviation", absl::StrCat("is set; of ", element_type_name(image->type),
                                                 " images there is only the mean"));
    }
    absl::Status status = read_radii(request, plan);
    if (status.ok()) status = read_boundary(request.boundary_x(), "boundary_x", plan.box.boundary_x);
    if (status.ok()) status = read_boundary(request.boundary_y(), "boundary_y", plan.box.boundary_y);
    if (status.ok() && plan.has_map) status = check_map(inputs[1], plan);
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    std::vector<OutputSpec> specs = {{"image", plan.image.array(v1::FLOAT32)}};
    if (plan.deviation) specs.push_back({"deviation", plan.image.array(v1::FLOAT32)});
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
    return with_input_type(plan.image.type, [&]<class Input>(Input*) {
      float any = 0;  // is not written: which pointers are null is all that counts
      BoxFilterJob<Input, S> job;
      job.image = plan.image.view(Span<const Input, S>());
      job.deviations = plan.deviation ? &any : nullptr;
      job.box = plan.box;
      return filter_box_scratch_bytes(job, device);
    });
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    with_input_type(plan.image.type, [&]<class Input>(Input*) {
      BoxFilterJob<Input, E::kSpace> job;
      job.image = plan.image.view(inputs.template as<const Input>(0));
      job.means = plan.image.view(outputs.template as<float>(0));
      if (plan.deviation) job.deviations = outputs.template as<float>(1).data();
      if (plan.has_map) job.radii = inputs.template as<const float>(1).data();
      job.box = plan.box;
      filter_box(executor, job);
      return std::size_t{0};
    });
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
  static absl::Status read_radii(const Request& request, Plan& plan) {
    constexpr std::int64_t kMostOfWords = 32767;  // boxes whose sums fit 64 bits
    const bool words = plan.image.type == v1::UINT32 || plan.image.type == v1::INT32;
    const std::int64_t larger = std::max(plan.image.height, plan.image.width);
    const std::int64_t largest = words ? std::min(larger, kMostOfWords) : larger;
    const auto read = [&](std::string_view field, std::int64_t asked, std::int64_t& radius) {
      if (asked < 0 || asked > largest) {
        return bad_field(field,
                         absl::StrCat("is ", asked, "; 0 to ", largest,
                                      largest == larger ? ", the larger of the image's width and height,"
                                                        : ", the most for pixels of 32 bits,",
                                      " is right"));
      }
      radius = asked;
      return absl::OkStatus();
    };
    absl::Status status = read("radius", request.radius(), plan.box.radius_x);
    if (plan.has_map && request.radius() == 0) plan.box.radius_x = largest;  // unset: the map decides
    plan.box.radius_y = plan.box.radius_x;
    if (status.ok() && request.has_radius_x())
      status = read("radius_x", request.radius_x(), plan.box.radius_x);
    if (status.ok() && request.has_radius_y())
      status = read("radius_y", request.radius_y(), plan.box.radius_y);
    return status;
  }

  static absl::Status read_boundary(v1::BoxBoundary asked, std::string_view field, Boundary& boundary) {
    switch (asked) {
      case v1::BOX_BOUNDARY_UNSPECIFIED:
      case v1::BOX_EXACT:
        boundary = Boundary::kExact;
        return absl::OkStatus();
      case v1::BOX_ZERO:
        boundary = Boundary::kZero;
        return absl::OkStatus();
      case v1::BOX_CLAMP:
        boundary = Boundary::kClamp;
        return absl::OkStatus();
      case v1::BOX_REPEAT:
        boundary = Boundary::kRepeat;
        return absl::OkStatus();
      case v1::BOX_REFLECT:
        boundary = Boundary::kReflect;
        return absl::OkStatus();
      default:
        return bad_field(field, absl::StrCat("is ", static_cast<int>(asked),
                                             "; BOX_EXACT, BOX_ZERO, BOX_CLAMP, BOX_REPEAT or BOX_REFLECT is "
                                             "right"));
    }
  }

  static absl::Status check_map(const InputArray& map, const Plan& plan) {
    const ArrayShape right{v1::FLOAT32, {plan.image.height, plan.image.width}};
    if (map.shape.type == right.type && map.shape.extents == right.extents) return absl::OkStatus();
    return bad_field("radius_map", absl::StrCat("is ", map.shape.text(), "; a radius for each pixel, ",
                                                right.text(), ", is right"));
  }
};

}  // namespace cumulus::server::ops

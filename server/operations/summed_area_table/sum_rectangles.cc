#include "server/operations/summed_area_table/sum_rectangles.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/operations/summed_area_table/element_types.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

/// Which of the inputs is what, in the order of `sources`.
void number_inputs(const SumRectangles::Request& request, SumRectangles::Plan& plan) {
  std::size_t next = 1;
  if (request.has_squares()) plan.squares = next++;
  if (request.has_offsets()) plan.offsets = next++;
  if (request.has_above()) plan.above = next++;
  if (request.has_left()) plan.left = next++;
  plan.rectangles = next;
}

absl::Status read_table(std::span<const InputArray> inputs, SumRectangles::Plan& plan) {
  const auto table = read_image_shape(inputs[0], sum_types(), 4);
  if (!table.ok()) return table.status();
  plan.table = *table;
  const std::int64_t least = plan.exclusive ? 2 : 1;
  if (table->height < least || table->width < least) {
    return bad_field("sums", concat("is ", inputs[0].shape.text(),
                                    "; an exclusive table has at least 2 rows and 2 columns"));
  }
  if (plan.squares && inputs[*plan.squares].shape != inputs[0].shape) {
    return bad_field("squares", concat("is ", inputs[*plan.squares].shape.text(), "; as the sums, ",
                                       inputs[0].shape.text(), ", is right"));
  }
  const ArrayShape offsets{v1::FLOAT32, {table->channels}};
  if (plan.offsets && (table->type != v1::FLOAT32 || inputs[*plan.offsets].shape != offsets)) {
    return bad_field("offsets", concat("is ", inputs[*plan.offsets].shape.text(), "; FLOAT32 [",
                                       table->channels, "] with FLOAT32 sums is right"));
  }
  return absl::OkStatus();
}

absl::Status expect_shape(const InputArray& input, const ArrayShape& right) {
  if (input.shape == right) return absl::OkStatus();
  return bad_field(input.field,
                   concat("is ", input.shape.text(), "; with these sums ", right.text(), " is right"));
}

/// The bases of a tile-local table: both or neither.
absl::Status read_bases(std::span<const InputArray> inputs, const SumRectangles::Plan& plan) {
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

absl::Status read_rectangles(const InputArray& input, SumRectangles::Plan& plan) {
  const auto& [type, extents] = input.shape;
  if (type != v1::INT32 || extents.size() != 2 || extents[1] != 4) {
    return bad_field("rectangles", concat("is ", input.shape.text(),
                                          "; INT32 [count, 4], top, left, bottom and right, is right"));
  }
  plan.count = extents[0];
  return absl::OkStatus();
}

bool wants(const SumRectangles::Plan& plan, v1::RectangleStatistic statistic) {
  return std::find(plan.statistics.begin(), plan.statistics.end(), statistic) != plan.statistics.end();
}

absl::Status read_statistics(const SumRectangles::Request& request, SumRectangles::Plan& plan) {
  for (int i = 0; i < request.statistics_size(); ++i) {
    const std::string field = concat("statistics[", i, "]");
    const auto statistic =
        read_enum<v1::RectangleStatistic>(field, request.statistics(i),
                                          {{v1::RECTANGLE_SUM, v1::RECTANGLE_SUM},
                                           {v1::RECTANGLE_MEAN, v1::RECTANGLE_MEAN},
                                           {v1::RECTANGLE_VARIANCE, v1::RECTANGLE_VARIANCE}});
    if (!statistic.ok()) return statistic.status();
    if (wants(plan, *statistic)) return bad_field(field, "comes a second time; each statistic once is right");
    plan.statistics.push_back(*statistic);
  }
  if (plan.statistics.empty()) plan.statistics = {v1::RECTANGLE_SUM};
  if (!wants(plan, v1::RECTANGLE_VARIANCE)) return absl::OkStatus();
  if (!plan.squares)
    return bad_field("squares", "is missing; variances need the table of squares beside the sums");
  if (plan.offsets)
    return bad_field("offsets", "is set; variances are of tables that were built with PLAIN_SUMS");
  return absl::OkStatus();
}

absl::Status read_border(const SumRectangles::Request& request, SumRectangles::Plan& plan) {
  const auto refuse = read_enum<bool>("border", request.border(),
                                      {{v1::RECTANGLE_BORDER_UNSPECIFIED, false},
                                       {v1::CLIP_RECTANGLES, false},
                                       {v1::REFUSE_RECTANGLES, true}});
  if (!refuse.ok()) return refuse.status();
  plan.refuse = *refuse;
  return absl::OkStatus();
}

const char* output_name(v1::RectangleStatistic statistic) {
  if (statistic == v1::RECTANGLE_SUM) return "sums";
  return statistic == v1::RECTANGLE_MEAN ? "means" : "variances";
}

template <class Sum, Space S>
TableView<Sum, S> place_table(const SumRectangles::Plan& plan, const Inputs<S>& inputs) {
  TableView<Sum, S> table{plan.image(), inputs.template as<const Sum>(0).data()};
  if (plan.squares) table.squares = inputs.template as<const Sum>(*plan.squares).data();
  if (plan.offsets) table.offsets = inputs.template as<const float>(*plan.offsets).data();
  if (plan.above) {
    table.above = inputs.template as<const double>(*plan.above).data();
    table.left = inputs.template as<const double>(*plan.left).data();
  }
  return table;
}

template <class Sum, Space S>
RectangleResults<Sum, S> place_results(const SumRectangles::Plan& plan, const Outputs<S>& outputs) {
  RectangleResults<Sum, S> results;
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
  return results;
}

}  // namespace

TableShape SumRectangles::Plan::image() const {
  const std::int64_t border = exclusive ? 1 : 0;
  return {table.height - border, table.width - border, table.channels, exclusive};
}

std::vector<SourceField> SumRectangles::sources(const Request& request) {
  std::vector<SourceField> fields = {{"sums", &request.sums()}};
  if (request.has_squares()) fields.push_back({"squares", &request.squares()});
  if (request.has_offsets()) fields.push_back({"offsets", &request.offsets()});
  if (request.has_above()) fields.push_back({"above", &request.above()});
  if (request.has_left()) fields.push_back({"left", &request.left()});
  fields.push_back({"rectangles", &request.rectangles()});
  return fields;
}

absl::StatusOr<SumRectangles::Plan> SumRectangles::validate(const Request& request,
                                                            std::span<const InputArray> inputs) {
  Plan plan;
  plan.exclusive = request.exclusive();
  number_inputs(request, plan);
  absl::Status status = read_table(inputs, plan);
  if (status.ok()) status = read_bases(inputs, plan);
  if (status.ok()) status = read_rectangles(inputs[plan.rectangles], plan);
  if (status.ok()) status = read_statistics(request, plan);
  if (status.ok()) status = read_border(request, plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> SumRectangles::outputs(const Plan& plan) {
  std::vector<OutputSpec> specs;
  for (const v1::RectangleStatistic statistic : plan.statistics) {
    ArrayShape shape{statistic == v1::RECTANGLE_SUM ? plan.table.type : v1::FLOAT64, {plan.count}};
    if (plan.table.has_channels) shape.extents.push_back(plan.table.channels);
    specs.push_back({output_name(statistic), std::move(shape)});
  }
  return specs;
}

Cost SumRectangles::cost(const Plan& plan) {
  // A statistic of one channel: four reads anywhere in the table.
  constexpr double kCoreSeconds = 30e-9;
  constexpr double kGpuSeconds = 0.1e-9;
  const double sums = static_cast<double>(plan.count) * static_cast<double>(plan.table.channels) *
                      static_cast<double>(plan.statistics.size());
  return {sums * kCoreSeconds, sums * kGpuSeconds};
}

template <Space S>
std::size_t SumRectangles::scratch_bytes(const Plan& plan) {
  static constexpr Report kAny{};
  return sum_rectangles_scratch_bytes<S>(plan.refuse ? &kAny : nullptr);
}

template <class E>
void SumRectangles::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                        const Outputs<E::kSpace>& outputs, Report& report) {
  with_sum_type(plan.table.type, [&]<class Sum>() {
    sum_rectangles(executor, place_table<Sum>(plan, inputs),
                   inputs.template as<const Rectangle>(plan.rectangles), place_results<Sum>(plan, outputs),
                   plan.refuse ? &report : nullptr);
  });
}

absl::Status SumRectangles::conclude(const Plan& plan, const Report& report) {
  if (!plan.refuse || report.first_outside < 0) return absl::OkStatus();
  const TableShape image = plan.image();
  return no_answer(
      "RECTANGLE_OUTSIDE",
      concat("rectangles: number ", report.first_outside, " is empty or reaches beyond the image of ",
             image.height, " x ", image.width, " pixels; with CLIP_RECTANGLES it is clipped"),
      {{"rectangle", concat(report.first_outside)}});
}

template std::size_t SumRectangles::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t SumRectangles::scratch_bytes<Space::kDevice>(const Plan&);
template void SumRectangles::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                 const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void SumRectangles::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                 const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

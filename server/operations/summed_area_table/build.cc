#include "server/operations/summed_area_table/build.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/summed_area_table/local.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "server/operations/summed_area_table/element_types.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

/// True of the sums that there are offsets and tile-local tables for.
template <class Sum>
constexpr bool kSingle = std::is_same_v<Sum, float>;

absl::Status read_images(const InputArray& input, const BuildSummedAreaTable::Request& request,
                         BuildSummedAreaTable::Plan& plan) {
  InputArray image = input;
  if (plan.planar) {
    auto& extents = image.shape.extents;
    if (extents.size() < 3 || extents.front() < 1) {
      return bad_field("image", concat("is ", input.shape.text(),
                                       "; with planar, [images, height, width] or [images, height, "
                                       "width, channels] of at least one image is right"));
    }
    plan.planes = extents.front();
    extents.erase(extents.begin());
  }
  const auto shape = read_image_shape(image, image_types(), 4);
  if (!shape.ok()) return shape.status();
  plan.image = *shape;
  plan.row_stride = shape->width * shape->channels;
  if (request.width() < 0 || request.width() > shape->width) {
    return bad_field("width", concat("is ", request.width(), "; 0 to ", shape->width,
                                     ", the columns that the image has, is right"));
  }
  if (request.width() > 0) plan.image.width = request.width();
  return absl::OkStatus();
}

/// `name`: the precision asked for, one whose sums are FLOAT32.
absl::Status check_precision(const std::string& name, const BuildSummedAreaTable::Plan& plan) {
  if (plan.image.type != v1::FLOAT32 && plan.image.type != v1::FLOAT16) {
    return bad_field("precision", concat("is ", name, "; for ", element_type_name(plan.image.type),
                                         " images PLAIN_SUMS is right"));
  }
  if (plan.squares) return bad_field("squares", concat("are not offered with ", name));
  if (plan.local && (plan.planar || plan.exclusive)) {
    return bad_field(plan.planar ? "planar" : "exclusive", "is not offered with TILE_LOCAL_SUMS");
  }
  return absl::OkStatus();
}

absl::Status read_precision(const BuildSummedAreaTable::Request& request, BuildSummedAreaTable::Plan& plan) {
  const auto precision = read_enum<v1::SumPrecision>("precision", request.precision(),
                                                     {{v1::SUM_PRECISION_UNSPECIFIED, v1::PLAIN_SUMS},
                                                      {v1::PLAIN_SUMS, v1::PLAIN_SUMS},
                                                      {v1::MEAN_SUBTRACTED_SUMS, v1::MEAN_SUBTRACTED_SUMS},
                                                      {v1::TILE_LOCAL_SUMS, v1::TILE_LOCAL_SUMS}});
  if (!precision.ok()) return precision.status();
  plan.offsets = *precision == v1::MEAN_SUBTRACTED_SUMS;
  plan.local = *precision == v1::TILE_LOCAL_SUMS;
  if (!plan.offsets && !plan.local) return absl::OkStatus();
  return check_precision(v1::SumPrecision_Name(*precision), plan);
}

absl::Status read_accumulator(const BuildSummedAreaTable::Request& request,
                              BuildSummedAreaTable::Plan& plan) {
  const std::string images = element_type_name(plan.image.type);
  const bool single = plan.offsets || plan.local;
  const std::vector<v1::ElementType> right =
      single ? std::vector{kWireType<float>} : sum_types_of(plan.image.type, plan.squares);
  if (right.empty()) {
    return bad_field("squares", concat("of ", images,
                                       " pixels have no room for sums in 64 bits; UINT8, UINT16 or float "
                                       "images are right"));
  }
  plan.accumulator =
      request.accumulator() == v1::ELEMENT_TYPE_UNSPECIFIED ? right.front() : request.accumulator();
  if (std::find(right.begin(), right.end(), plan.accumulator) != right.end()) return absl::OkStatus();
  std::string text = concat("is ", element_type_name(plan.accumulator), "; for ", images, " images ");
  if (plan.squares) text += "with squares ";
  if (single) text += concat("of ", v1::SumPrecision_Name(request.precision()), " ");
  text += element_type_name(right.front());
  if (right.size() > 1) text += " or " + element_type_name(right.back());
  return bad_field("accumulator", text + " is right");
}

/// The largest magnitude of an integer type.
template <class T>
constexpr std::uint64_t kLargest = static_cast<std::uint64_t>(std::numeric_limits<T>::max()) +
                                   (std::is_signed_v<T> ? 1 : 0);

/// Refuses images whose sums would not fit the accumulator, were every pixel the largest. Floats do not
/// overflow.
template <class Image, class Sum>
absl::Status check_fit(const BuildSummedAreaTable::Plan& plan) {
  if constexpr (std::is_integral_v<Sum>) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Sum>::max());
    const std::uint64_t largest = plan.squares ? kLargest<Image> * kLargest<Image> : kLargest<Image>;
    const auto height = static_cast<std::uint64_t>(plan.image.height);
    if (height <= kMost / largest / static_cast<std::uint64_t>(plan.image.width)) return absl::OkStatus();
    return bad_field(
        plan.squares ? "squares" : "accumulator",
        concat(plan.squares ? "go into " : "is ", element_type_name(plan.accumulator), ", which ",
               plan.image.height, " x ", plan.image.width, " pixels of ", largest, " overflow; ",
               sizeof(Sum) == 4 ? "UINT64, or " : "", "overflow WRAP_OVERFLOW, is right"));
  }
  return absl::OkStatus();
}

absl::Status read_overflow(const BuildSummedAreaTable::Request& request,
                           const BuildSummedAreaTable::Plan& plan) {
  const auto refuses = read_enum<bool>(
      "overflow", request.overflow(),
      {{v1::SUM_OVERFLOW_UNSPECIFIED, true}, {v1::REFUSE_OVERFLOW, true}, {v1::WRAP_OVERFLOW, false}});
  if (!refuses.ok()) return refuses.status();
  absl::Status status;
  if (!*refuses) return status;
  with_element_pair(plan.image.type, plan.accumulator,
                    [&]<class Image, class Sum>() { status = check_fit<Image, Sum>(plan); });
  return status;
}

/// Of the images and their sums alone.
template <class Image, class Sum, Space S>
TableJob<Image, Sum, S> table_job(const BuildSummedAreaTable::Plan& plan, const Image* pixels, Sum* sums) {
  const std::int64_t border = plan.exclusive ? 1 : 0;
  TableJob<Image, Sum, S> job;
  job.image = {pixels, plan.image.height, plan.image.width, plan.image.channels, plan.row_stride};
  job.sums = {sums, plan.image.height + border, plan.image.width + border, plan.image.channels};
  job.planes = plan.planes;
  job.plane_stride = plan.image.height * plan.row_stride;
  job.exclusive = plan.exclusive;
  return job;
}

template <class Image, class Sum, Space S>
std::size_t table_scratch_bytes(const BuildSummedAreaTable::Plan& plan, const DeviceNumbers& device) {
  const auto job = table_job<Image, Sum, S>(plan, nullptr, nullptr);
  if constexpr (kSingle<Sum>) {
    if (plan.local) {
      const LocalTableJob<Image, S> local{job.image, job.sums};
      return build_local_summed_area_table_scratch_bytes(local, device);
    }
  }
  auto shape = summed_area_table::build_shape(job);
  shape.squares = plan.squares;
  shape.offsets = plan.offsets;
  std::size_t bytes = summed_area_table::table_scratch_bytes<S>(shape, device);
  if constexpr (kSingle<Sum>) {
    if (plan.offsets) bytes += average_image_scratch_bytes(job);
  }
  return bytes;
}

template <class Image, class Sum, class E>
void build_table(E& executor, const BuildSummedAreaTable::Plan& plan, const Inputs<E::kSpace>& inputs,
                 const Outputs<E::kSpace>& outputs) {
  auto job = table_job<Image, Sum, E::kSpace>(plan, inputs.template as<const Image>(0).data(),
                                              outputs.template as<Sum>(0).data());
  if (plan.squares) job.squares = outputs.template as<Sum>(1).data();
  if constexpr (kSingle<Sum>) {
    if (plan.local) {
      build_local_summed_area_table(executor, LocalTableJob<Image, E::kSpace>{
                                                  job.image, job.sums, outputs.template as<double>(1).data(),
                                                  outputs.template as<double>(2).data()});
      return;
    }
    if (plan.offsets) {
      const auto offsets = outputs.template as<float>(1);
      average_image(executor, job, offsets);
      executor.check_interrupt();
      job.offsets = offsets.data();
    }
  }
  build_summed_area_table(executor, job);
}

}  // namespace

std::vector<SourceField> BuildSummedAreaTable::sources(const Request& request) {
  return {{"image", &request.image()}};
}

absl::StatusOr<BuildSummedAreaTable::Plan> BuildSummedAreaTable::validate(
    const Request& request, std::span<const InputArray> inputs) {
  Plan plan;
  plan.planar = request.planar();
  plan.exclusive = request.exclusive();
  plan.squares = request.squares();
  absl::Status status = read_images(inputs[0], request, plan);
  if (status.ok()) status = read_precision(request, plan);
  if (status.ok()) status = read_accumulator(request, plan);
  if (status.ok()) status = read_overflow(request, plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> BuildSummedAreaTable::outputs(const Plan& plan) {
  ImageShape table = plan.image;
  table.height += plan.exclusive ? 1 : 0;
  table.width += plan.exclusive ? 1 : 0;
  ArrayShape sums = table.array(plan.accumulator);
  ArrayShape offsets{v1::FLOAT32, {plan.image.channels}};
  if (plan.planar) {
    sums.extents.insert(sums.extents.begin(), plan.planes);
    offsets.extents.insert(offsets.extents.begin(), plan.planes);
  }
  std::vector<OutputSpec> specs = {{"sums", sums}};
  if (plan.squares) specs.push_back({"squares", sums});
  if (plan.offsets) specs.push_back({"offsets", offsets});
  if (plan.local) {
    const std::int64_t tile_rows = local_tile_rows(plan.image.height);
    const std::int64_t tile_columns = local_tile_columns(plan.image.width);
    specs.push_back({"above", {v1::FLOAT64, {tile_rows + 1, plan.image.width + 1, plan.image.channels}}});
    specs.push_back(
        {"left", {v1::FLOAT64, {tile_rows, kLocalTileRows + 1, tile_columns + 1, plan.image.channels}}});
  }
  return specs;
}

Cost BuildSummedAreaTable::cost(const Plan& plan) {
  // A sum.
  constexpr double kCoreSeconds = 1.5e-9;
  constexpr double kGpuSeconds = 0.005e-9;
  const double sums = static_cast<double>(plan.planes) *
                      static_cast<double>(plan.image.array(plan.accumulator).elements()) *
                      (plan.squares || plan.offsets || plan.local ? 2 : 1);
  return {sums * kCoreSeconds, sums * kGpuSeconds};
}

template <Space S>
std::size_t BuildSummedAreaTable::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  std::size_t bytes = 0;
  with_element_pair(plan.image.type, plan.accumulator, [&]<class Image, class Sum>() {
    bytes = table_scratch_bytes<Image, Sum, S>(plan, device);
  });
  return bytes;
}

template <class E>
void BuildSummedAreaTable::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                               const Outputs<E::kSpace>& outputs, Report& /*report*/) {
  with_element_pair(plan.image.type, plan.accumulator, [&]<class Image, class Sum>() {
    build_table<Image, Sum>(executor, plan, inputs, outputs);
  });
}

template std::size_t BuildSummedAreaTable::scratch_bytes<Space::kHost>(const Plan&, const DeviceNumbers&);
template std::size_t BuildSummedAreaTable::scratch_bytes<Space::kDevice>(const Plan&, const DeviceNumbers&);
template void BuildSummedAreaTable::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                        const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void BuildSummedAreaTable::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                        const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

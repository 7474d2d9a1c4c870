#include "server/operations/summed_area_table/filter_box.h"

#include <algorithm>
#include <cstdint>

#include "server/operations/summed_area_table/element_types.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_image(const InputArray& input, FilterBox::Plan& plan) {
  const auto image = read_image_shape(input, image_types(), 4);
  if (!image.ok()) return image.status();
  plan.image = *image;
  if (!plan.deviation || !sum_types_of(image->type, true).empty()) return absl::OkStatus();
  return bad_field("deviation",
                   concat("is set; of ", element_type_name(image->type), " images there is only the mean"));
}

absl::Status read_radii(const FilterBox::Request& request, FilterBox::Plan& plan) {
  constexpr std::int64_t kMostOfWords = 32767;  // boxes whose sums fit 64 bits
  const bool words = plan.image.type == v1::UINT32 || plan.image.type == v1::INT32;
  const std::int64_t larger = std::max(plan.image.height, plan.image.width);
  const std::int64_t largest = words ? std::min(larger, kMostOfWords) : larger;
  const auto read = [&](std::string_view field, std::int64_t asked, std::int64_t& radius) {
    radius = asked;
    if (asked >= 0 && asked <= largest) return absl::OkStatus();
    return bad_field(field, concat("is ", asked, "; 0 to ", largest,
                                   largest == larger ? ", the larger of the image's width and height,"
                                                     : ", the most for pixels of 32 bits,",
                                   " is right"));
  };
  absl::Status status = read("radius", request.radius(), plan.box.radius_x);
  if (plan.has_map && request.radius() == 0) plan.box.radius_x = largest;  // unset: the map decides
  plan.box.radius_y = plan.box.radius_x;
  if (status.ok() && request.has_radius_x()) {
    status = read("radius_x", request.radius_x(), plan.box.radius_x);
  }
  if (status.ok() && request.has_radius_y()) {
    status = read("radius_y", request.radius_y(), plan.box.radius_y);
  }
  return status;
}

absl::Status read_boundary(std::string_view field, v1::BoxBoundary asked, Boundary& boundary) {
  const auto read = read_enum<Boundary>(field, asked,
                                        {{v1::BOX_BOUNDARY_UNSPECIFIED, Boundary::kClamp},
                                         {v1::BOX_EXACT, Boundary::kExact},
                                         {v1::BOX_ZERO, Boundary::kZero},
                                         {v1::BOX_CLAMP, Boundary::kClamp},
                                         {v1::BOX_REPEAT, Boundary::kRepeat},
                                         {v1::BOX_REFLECT, Boundary::kReflect},
                                         {v1::BOX_MIRROR, Boundary::kMirror}});
  if (!read.ok()) return read.status();
  boundary = *read;
  return absl::OkStatus();
}

absl::Status check_map(const InputArray& map, const FilterBox::Plan& plan) {
  const ArrayShape right{v1::FLOAT32, {plan.image.height, plan.image.width}};
  if (map.shape == right) return absl::OkStatus();
  return bad_field("radius_map", concat("is ", map.shape.text(), "; a radius for each pixel, ", right.text(),
                                        ", is right"));
}

}  // namespace

std::vector<SourceField> FilterBox::sources(const Request& request) {
  std::vector<SourceField> fields = {{"image", &request.image()}};
  if (request.has_radius_map()) fields.push_back({"radius_map", &request.radius_map()});
  return fields;
}

absl::StatusOr<FilterBox::Plan> FilterBox::validate(const Request& request,
                                                    std::span<const InputArray> inputs) {
  Plan plan;
  plan.has_map = request.has_radius_map();
  plan.deviation = request.deviation();
  absl::Status status = read_image(inputs[0], plan);
  if (status.ok()) status = read_radii(request, plan);
  if (status.ok()) status = read_boundary("boundary_x", request.boundary_x(), plan.box.boundary_x);
  if (status.ok()) status = read_boundary("boundary_y", request.boundary_y(), plan.box.boundary_y);
  if (status.ok() && plan.has_map) status = check_map(inputs[1], plan);
  if (!status.ok()) return status;
  const auto non_finite = read_non_finite(request.non_finite());
  if (!non_finite.ok()) return non_finite.status();
  plan.non_finite = *non_finite;
  return plan;
}

std::vector<OutputSpec> FilterBox::outputs(const Plan& plan) {
  std::vector<OutputSpec> specs = {{"image", plan.image.array(v1::FLOAT32)}};
  if (plan.deviation) specs.push_back({"deviation", plan.image.array(v1::FLOAT32)});
  return specs;
}

Cost FilterBox::cost(const Plan& plan) {
  // An element: its sum, and its mean, or its mean within a box of its own.
  constexpr double kCoreSeconds = 4e-9;
  constexpr double kGpuSeconds = 0.02e-9;
  const double elements = static_cast<double>(plan.image.array(v1::FLOAT32).elements());
  const double passes = (plan.deviation ? 2 : 1) * (plan.has_map ? 2 : 1);
  return {elements * passes * kCoreSeconds, elements * passes * kGpuSeconds};
}

template <Space S>
std::size_t FilterBox::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  std::size_t bytes = 0;
  with_image_type(plan.image.type, [&]<class Image>() {
    float any = 0;  // is not written: which pointers are null is all that counts
    BoxFilterJob<Image, S> job;
    job.image = plan.image.view(Span<const Image, S>());
    job.deviations = plan.deviation ? &any : nullptr;
    job.radii = plan.has_map ? &any : nullptr;
    job.box = plan.box;
    const auto elements = static_cast<std::size_t>(plan.image.array(plan.image.type).elements());
    bytes =
        non_finite_scratch_bytes<Image>(plan.non_finite, elements) + filter_box_scratch_bytes(job, device);
  });
  return bytes;
}

template <class E>
void FilterBox::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                    const Outputs<E::kSpace>& outputs, Report& report) {
  with_image_type(plan.image.type, [&]<class Image>() {
    const auto pixels = treat_non_finite<E, Image>(executor, policy_before<E>(plan.non_finite),
                                                   inputs.template as<const Image>(0), report);
    BoxFilterJob<Image, E::kSpace> job;
    job.image = plan.image.view(pixels);
    job.means = plan.image.view(outputs.template as<float>(0));
    if (plan.deviation) job.deviations = outputs.template as<float>(1).data();
    if (plan.has_map) job.radii = inputs.template as<const float>(1).data();
    job.box = plan.box;
    if constexpr (E::kSpace == Space::kHost) {
      refuse_after<Image>(executor, filter_box(executor, job), plan.non_finite, pixels, report);
    } else {
      filter_box(executor, job);
    }
  });
}

absl::Status FilterBox::conclude(const Plan& plan, const Report& report) {
  return check_non_finite(report, "image", plan.image.array(plan.image.type));
}

template std::size_t FilterBox::scratch_bytes<Space::kHost>(const Plan&, const DeviceNumbers&);
template std::size_t FilterBox::scratch_bytes<Space::kDevice>(const Plan&, const DeviceNumbers&);
template void FilterBox::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                             const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void FilterBox::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                             const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

#include "server/operations/recursive_filter/apply.h"

#include <cmath>
#include <complex>
#include <optional>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

using Request = ApplyRecursiveFilter::Request;
using Report = ApplyRecursiveFilter::Report;
using Plan = ApplyRecursiveFilter::Plan;
using Method = RecursiveFilterMethod;

/// [height, width, ...] of each image, [images, height, width, channels] of all.
absl::Status read_images(const InputArray& input, Plan& plan) {
  InputArray one = input;
  plan.shape = input.shape;
  if (one.shape.extents.size() == 4) {
    plan.images = one.shape.extents.front();
    one.shape.extents.erase(one.shape.extents.begin());
    if (plan.images < 1) return bad_field(one.field, "has no images; a batch has at least one");
  }
  const auto image = read_image_shape(one, {v1::FLOAT32, v1::FLOAT16, v1::FLOAT64}, 4);
  if (!image.ok()) return image.status();
  plan.image = *image;
  return absl::OkStatus();
}

absl::Status read_sum(const Request& request, std::span<const InputArray> inputs, Plan& plan) {
  if (!request.has_accumulate()) {
    if (!request.has_weight()) return absl::OkStatus();
    return bad_field("weight", "is set without accumulate, which it goes with");
  }
  plan.accumulates = true;
  if (request.has_weight()) plan.weight = request.weight();
  if (!std::isfinite(plan.weight)) {
    return bad_field("weight", concat("is ", plan.weight, "; a finite number is right"));
  }
  const ArrayShape& image = inputs[0].shape;
  const ArrayShape& addend = inputs[1].shape;
  if (addend == image) return absl::OkStatus();
  return bad_field("accumulate", concat("is ", addend.text(), "; the image's ", image.text(), " is right"));
}

absl::Status read_gaussian(const v1::GaussianFilter& wire, const std::string& path, FilterBoundary boundary,
                           AxisFilter& axis) {
  if (!(wire.sigma() >= kMinSigma && wire.sigma() <= kMaxSigma)) {
    return bad_field(path + ".gaussian.sigma",
                     concat("is ", wire.sigma(), "; ", kMinSigma, " to ", kMaxSigma, " pixels is right"));
  }
  const auto young = read_enum<bool>(
      path + ".gaussian.method", wire.method(),
      {{v1::GAUSSIAN_METHOD_UNSPECIFIED, false}, {v1::GAUSSIAN_DERICHE, false}, {v1::GAUSSIAN_YOUNG, true}});
  if (!young.ok()) return young.status();
  if (wire.derivative() < 0 || wire.derivative() > (*young ? 0 : 2)) {
    return bad_field(
        path + ".gaussian.derivative",
        concat("is ", wire.derivative(), "; 0, 1 or 2 is right, and only 0 with GAUSSIAN_YOUNG"));
  }
  axis = *young ? gaussian_filter(wire.sigma(), boundary)
                : deriche_filter(wire.sigma(), wire.derivative(), boundary);
  return absl::OkStatus();
}

absl::Status read_bspline(const v1::BsplinePrefilter& wire, const std::string& path, FilterBoundary boundary,
                          AxisFilter& axis) {
  if (wire.degree() != 3 && wire.degree() != 5) {
    return bad_field(path + ".bspline_prefilter.degree", concat("is ", wire.degree(), "; 3 or 5 is right"));
  }
  axis = bspline_prefilter(wire.degree(), boundary);
  return absl::OkStatus();
}

absl::Status read_exponential(const v1::ExponentialFilter& wire, const std::string& path,
                              FilterBoundary boundary, AxisFilter& axis) {
  if (!(wire.decay() >= 0 && wire.decay() <= kMaxPoleRadius)) {
    return bad_field(path + ".exponential.decay",
                     concat("is ", wire.decay(), "; 0 to ", kMaxPoleRadius, " is right"));
  }
  axis = exponential_filter(wire.decay(), boundary);
  return absl::OkStatus();
}

absl::Status check_coefficients(std::span<const double> coefficients, const std::string& field) {
  if (coefficients.size() > std::size_t{kMaxFilterOrder}) {
    return bad_field(
        field, concat("has ", coefficients.size(), " coefficients; at most ", kMaxFilterOrder, " are right"));
  }
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    if (!std::isfinite(coefficients[k])) {
      return bad_field(concat(field, "[", k, "]"),
                       concat("is ", coefficients[k], "; a finite number is right"));
    }
  }
  return absl::OkStatus();
}

absl::Status check_stable(const OneWayFilter& poles, const std::string& field) {
  const auto pole = unstable_pole(poles);
  if (!pole.has_value()) return absl::OkStatus();
  return bad_field(
      field, concat("has the pole ", pole->real(), pole->imag() < 0 ? " - " : " + ", std::abs(pole->imag()),
                    "i, ", std::abs(*pole), " from the origin; at most ", kMaxPoleRadius, " is stable"));
}

absl::Status read_feedback(const v1::FeedbackFilter& wire, const std::string& path, FilterBoundary boundary,
                           AxisFilter& axis) {
  std::optional<double> gain;
  if (wire.has_gain()) gain = wire.gain();
  if (gain.has_value() && (!std::isfinite(*gain) || *gain == 0)) {
    return bad_field(path + ".feedback.gain",
                     concat("is ", *gain, "; a finite number other than 0 is right"));
  }
  const auto span_of = [](const auto& field) {
    return std::span<const double>(field.data(), static_cast<std::size_t>(field.size()));
  };
  const std::string causal = path + ".feedback.causal";
  const std::string anticausal = path + ".feedback.anticausal";
  absl::Status status = check_coefficients(span_of(wire.causal()), causal);
  if (status.ok()) status = check_coefficients(span_of(wire.anticausal()), anticausal);
  if (!status.ok()) return status;
  axis = feedback_filter(gain, span_of(wire.causal()), span_of(wire.anticausal()), boundary);
  status = check_stable(axis.causal, causal);
  if (status.ok()) status = check_stable(axis.anticausal, anticausal);
  return status;
}

absl::Status read_axis(const v1::AxisFilter& wire, const std::string& path, AxisFilter& axis) {
  const auto boundary = read_enum<FilterBoundary>(path + ".boundary", wire.boundary(),
                                                  {{v1::FILTER_BOUNDARY_UNSPECIFIED, FilterBoundary::kClamp},
                                                   {v1::FILTER_ZERO, FilterBoundary::kZero},
                                                   {v1::FILTER_CLAMP, FilterBoundary::kClamp},
                                                   {v1::FILTER_REPEAT, FilterBoundary::kRepeat},
                                                   {v1::FILTER_REFLECT, FilterBoundary::kReflect},
                                                   {v1::FILTER_MIRROR, FilterBoundary::kMirror}});
  if (!boundary.ok()) return boundary.status();
  switch (wire.kernel_case()) {
    case v1::AxisFilter::kGaussian:
      return read_gaussian(wire.gaussian(), path, *boundary, axis);
    case v1::AxisFilter::kBsplinePrefilter:
      return read_bspline(wire.bspline_prefilter(), path, *boundary, axis);
    case v1::AxisFilter::kExponential:
      return read_exponential(wire.exponential(), path, *boundary, axis);
    case v1::AxisFilter::kFeedback:
      return read_feedback(wire.feedback(), path, *boundary, axis);
    case v1::AxisFilter::KERNEL_NOT_SET:
      break;
  }
  return bad_field(path, "has no kernel; gaussian, bspline_prefilter, exponential or feedback is right");
}

absl::Status read_filter(const Request& request, RecursiveFilter& filter) {
  absl::Status status;
  if (request.has_y()) status = read_axis(request.y(), "y", filter.y);
  if (status.ok() && request.has_x()) status = read_axis(request.x(), "x", filter.x);
  return status;
}

absl::Status check_choice(const Plan& plan) {
  switch (obstacle_to(plan.filter, plan.image.height, plan.image.width, plan.image.type == v1::FLOAT64,
                      plan.choice)) {
    case MethodObstacle::kNone:
    case MethodObstacle::kTooManyTiles:  // told by the run
      break;
    case MethodObstacle::kTiles:
      return bad_field(
          "method",
          "goes by tiles, which take no FLOAT64 image, nor FILTER_REFLECT and FILTER_MIRROR for a "
          "filter whose two directions have different poles; FILTER_BY_LINES is right");
    case MethodObstacle::kStrips:
      return bad_field(
          "method",
          "is FILTER_DECAYING, which takes filters of at most 4 poles (a Gaussian's sigma up to "
          "about 14), no FILTER_MIRROR along x, and FILTER_REPEAT and FILTER_REFLECT along x only "
          "where the width is a multiple of 64 and more than 256; FILTER_TILED is right");
    case MethodObstacle::kTruncation:
      return bad_field("max_truncation_error",
                       concat("is ", plan.choice.max_truncation_error,
                              "; the filter remembers too much of an image of this size for the method to "
                              "leave out no more; a larger one, or FILTER_TILED, is right"));
  }
  return absl::OkStatus();
}

absl::Status read_choice(const Request& request, Plan& plan) {
  if (request.has_max_truncation_error()) {
    plan.choice.max_truncation_error = request.max_truncation_error();
    if (!(request.max_truncation_error() >= 0 && request.max_truncation_error() <= 1)) {
      return bad_field("max_truncation_error",
                       concat("is ", request.max_truncation_error(),
                              "; 0 (nothing) to 1 (as much as the image's largest magnitude) is right"));
    }
  }
  const auto method = read_enum<Method>("method", request.method(),
                                        {{v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED, Method::kAutomatic},
                                         {v1::FILTER_BY_LINES, Method::kLines},
                                         {v1::FILTER_TILED, Method::kTiled},
                                         {v1::FILTER_ON_CHIP, Method::kOnChip},
                                         {v1::FILTER_DECAYING, Method::kDecaying}});
  if (!method.ok()) return method.status();
  plan.choice.method = *method;
  return check_choice(plan);
}

v1::RecursiveFilterMethod wire_method(Method method) {
  switch (method) {
    case Method::kAutomatic:
      break;
    case Method::kLines:
      return v1::FILTER_BY_LINES;
    case Method::kTiled:
      return v1::FILTER_TILED;
    case Method::kOnChip:
      return v1::FILTER_ON_CHIP;
    case Method::kDecaying:
      return v1::FILTER_DECAYING;
  }
  return v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED;
}

/// Calls `body` with a null pointer to the image's elements.
template <class Body>
auto with_element(const Plan& plan, const Body& body) {
  if (plan.image.type == v1::FLOAT16) return body(static_cast<Float16*>(nullptr));
  if (plan.image.type == v1::FLOAT64) return body(static_cast<double*>(nullptr));
  return body(static_cast<float*>(nullptr));
}

template <class T>
HostSpan<const std::byte> bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof(T)};
}

}  // namespace

std::vector<SourceField> ApplyRecursiveFilter::sources(const Request& request) {
  std::vector<SourceField> sources = {{"image", &request.image()}};
  if (request.has_accumulate()) sources.push_back({"accumulate", &request.accumulate()});
  return sources;
}

absl::StatusOr<Plan> ApplyRecursiveFilter::validate(const Request& request,
                                                    std::span<const InputArray> inputs) {
  Plan plan;
  plan.tells_method = request.tell_method();
  absl::Status status = read_images(inputs[0], plan);
  if (status.ok() && !request.has_y() && !request.has_x()) {
    status = bad_field("x", "is missing, and so is y; a filter for at least one of the axes is right");
  }
  if (status.ok()) status = read_sum(request, inputs, plan);
  if (status.ok()) status = read_filter(request, plan.filter);
  if (status.ok()) status = read_choice(request, plan);
  if (!status.ok()) return status;
  const auto non_finite = read_non_finite(request.non_finite());
  if (!non_finite.ok()) return non_finite.status();
  plan.non_finite = *non_finite;
  return plan;
}

std::vector<OutputSpec> ApplyRecursiveFilter::outputs(const Plan& plan) {
  std::vector<OutputSpec> specs = {{"image", plan.shape}};
  if (plan.tells_method) {
    specs.push_back({"method", {v1::INT32, {1}}});
    specs.push_back({"truncation_bound", {v1::FLOAT64, {1}}});
  }
  return specs;
}

Cost ApplyRecursiveFilter::cost(const Plan& plan) {
  // An element, along one axis, for a pass there and back and a term of the recurrence.
  constexpr double kCoreSeconds = 1.5e-9;
  constexpr double kGpuSeconds = 0.01e-9;
  const double elements = static_cast<double>(plan.shape.elements());
  const double terms = 2.0 * (1 + recursive_filter::kernel_order(plan.filter)) + (plan.accumulates ? 1 : 0);
  return {elements * terms * kCoreSeconds, elements * terms * kGpuSeconds};
}

template <Space S>
std::size_t ApplyRecursiveFilter::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  return with_element(plan, [&]<class T>(T*) {
    const auto elements = static_cast<std::size_t>(plan.shape.elements());
    return non_finite_scratch_bytes<T>(plan.non_finite, elements) +
           apply_recursive_filter_scratch_bytes<T, S>({plan.image.view(Span<const T, S>()), plan.images},
                                                      plan.filter, device, plan.choice);
  });
}

template <class E>
void ApplyRecursiveFilter::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                               const Outputs<E::kSpace>& outputs, Report& report) {
  with_element(plan, [&]<class T>(T*) {
    const auto pixels =
        treat_non_finite<E, T>(executor, plan.non_finite, inputs.template as<const T>(0), report.non_finite);
    if (E::kSpace == Space::kHost && report.non_finite.found()) return;
    try {
      const RecursiveFilterRun run =
          apply_recursive_filter<T>(executor, {plan.image.view(pixels), plan.images}, plan.filter,
                                    {plan.image.view(outputs.template as<T>(0)), plan.images}, plan.choice);
      report.method = wire_method(run.method);
      report.truncation_bound = run.truncation_bound;
    } catch (const DoesNotFitOnChip& misfit) {
      report.tiles = misfit.tiles();
      report.tiles_on_chip = misfit.tiles_on_chip();
      return;
    }
    if (plan.accumulates) {
      add_scaled<T>(executor, inputs.template as<const T>(1), plan.weight, outputs.template as<T>(0));
    }
    if (plan.tells_method) {
      executor.upload(bytes_of(report.method), outputs.template as<std::byte>(1));
      executor.upload(bytes_of(report.truncation_bound), outputs.template as<std::byte>(2));
    }
  });
}

absl::Status ApplyRecursiveFilter::conclude(const Plan& plan, const Report& report) {
  absl::Status finite = check_non_finite(report.non_finite, "image", plan.shape);
  if (!finite.ok()) return finite;
  if (report.tiles_on_chip >= report.tiles) return absl::OkStatus();
  return no_answer("DOES_NOT_FIT_ON_CHIP",
                   concat("method: is FILTER_ON_CHIP; this device holds ", report.tiles_on_chip,
                          " tiles of 64 x 64 pixels, a channel of the image has ", report.tiles,
                          "; FILTER_TILED, or no method at all, is right"),
                   {{"tiles", concat(report.tiles)}, {"tiles_on_chip", concat(report.tiles_on_chip)}});
}

template std::size_t ApplyRecursiveFilter::scratch_bytes<Space::kHost>(const Plan&, const DeviceNumbers&);
template std::size_t ApplyRecursiveFilter::scratch_bytes<Space::kDevice>(const Plan&, const DeviceNumbers&);
template void ApplyRecursiveFilter::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                        const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void ApplyRecursiveFilter::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                        const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops

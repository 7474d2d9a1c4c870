#include "server/operations/recursive_filter/apply.h"

#include <cmath>
#include <optional>
#include <string>

#include "server/operations/recursive_filter/axis.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

using Method = RecursiveFilterMethod;

/// [height, width, ...] of each image, [images, height, width, channels] of all.
absl::Status read_images(const InputArray& input, ApplyRecursiveFilter::Plan& plan) {
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

absl::Status read_sum(const ApplyRecursiveFilter::Request& request, std::span<const InputArray> inputs,
                      ApplyRecursiveFilter::Plan& plan) {
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

FilteredCertainty certainty_of(const EitherAxis& axis, std::int64_t length) {
  if (!axis.inside_only) return {};
  return axis.fir.has_value() ? filtered_certainty(*axis.fir, length)
                              : filtered_certainty(axis.recursive, length);
}

/// Whether GAUSSIAN_FIR can blur the axis, and nothing else is asked for.
bool admits_fir(const v1::AxisFilter& axis) {
  return axis.has_gaussian() && axis.gaussian().derivative() == 0 &&
         (axis.gaussian().method() == v1::GAUSSIAN_METHOD_UNSPECIFIED ||
          axis.gaussian().method() == v1::GAUSSIAN_FIR);
}

/// Of Gaussians that name none.
v1::GaussianMethod gaussian_method(const ApplyRecursiveFilter::Request& request) {
  const bool by_any_method =
      request.method() == v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED || request.method() == v1::FILTER_FIR;
  const bool fir = by_any_method && !request.has_max_truncation_error() &&
                   (!request.has_y() || admits_fir(request.y())) &&
                   (!request.has_x() || admits_fir(request.x()));
  return fir ? v1::GAUSSIAN_FIR : v1::GAUSSIAN_DERICHE;
}

absl::Status read_filter(const ApplyRecursiveFilter::Request& request, ApplyRecursiveFilter::Plan& plan) {
  EitherAxis y, x;
  absl::Status status;
  const v1::GaussianMethod gaussian = gaussian_method(request);
  if (request.has_y()) status = read_axis(request.y(), "y", gaussian, y);
  if (status.ok() && request.has_x()) status = read_axis(request.x(), "x", gaussian, x);
  if (!status.ok()) return status;
  plan.filter = {y.recursive, x.recursive};
  if (y.inside_only || x.inside_only) {
    plan.certainties = {certainty_of(y, plan.image.height), certainty_of(x, plan.image.width)};
  }
  if (!y.fir.has_value() && !x.fir.has_value()) return absl::OkStatus();
  plan.fir = FirBlur{y.fir, x.fir};
  if (request.has_y() && request.has_x() && y.fir.has_value() != x.fir.has_value()) {
    return bad_field(y.fir.has_value() ? "x" : "y",
                     "is filtered recursively and the other axis by GAUSSIAN_FIR; a gaussian of GAUSSIAN_FIR "
                     "along both, or along one alone, is right");
  }
  return absl::OkStatus();
}

/// GAUSSIAN_FIR goes one way.
absl::Status check_fir_choice(const ApplyRecursiveFilter::Request& request) {
  if (request.has_max_truncation_error()) {
    return bad_field("max_truncation_error",
                     "is of recursive filters; leave it out with GAUSSIAN_FIR, which leaves out less than "
                     "2^-46 of the image's largest magnitude");
  }
  if (request.method() == v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED || request.method() == v1::FILTER_FIR) {
    return absl::OkStatus();
  }
  return bad_field("method", concat("is ", v1::RecursiveFilterMethod_Name(request.method()),
                                    ", which is of recursive filters; FILTER_FIR, or no method at all, is "
                                    "right with GAUSSIAN_FIR"));
}

/// What results are divided by at most.
double smallest_certainty(const ApplyRecursiveFilter::Plan& plan) {
  return plan.certainties.has_value() ? plan.certainties->smallest() : 1;
}

absl::Status check_choice(const ApplyRecursiveFilter::Plan& plan, double asked_error) {
  switch (obstacle_to(plan.filter, plan.image.height, plan.image.width, plan.image.type == v1::FLOAT64,
                      plan.choice)) {
    case MethodObstacle::kNone:
    case MethodObstacle::kTooManyTiles:  // the run finds it
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
      return bad_field(
          "max_truncation_error",
          concat("is ", asked_error,
                 "; the filter's decay length is too long in an image of this size for the method "
                 "to leave out no more; a larger one, or FILTER_TILED, is right"));
  }
  return absl::OkStatus();
}

absl::Status read_choice(const ApplyRecursiveFilter::Request& request, ApplyRecursiveFilter::Plan& plan) {
  if (plan.fir.has_value()) return check_fir_choice(request);
  if (request.method() == v1::FILTER_FIR) {
    return bad_field("method",
                     "is FILTER_FIR, which is of Gaussians of GAUSSIAN_FIR alone; no method at all is right");
  }
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
  const double asked_error = plan.choice.max_truncation_error;
  plan.choice.max_truncation_error *= smallest_certainty(plan);
  return check_choice(plan, asked_error);
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
auto with_element(const ApplyRecursiveFilter::Plan& plan, const Body& body) {
  if (plan.image.type == v1::FLOAT16) return body(static_cast<Float16*>(nullptr));
  if (plan.image.type == v1::FLOAT64) return body(static_cast<double*>(nullptr));
  return body(static_cast<float*>(nullptr));
}

template <class T>
HostSpan<const std::byte> bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof(T)};
}

/// A multiplication and addition of the blur's stages, on a core and on a GPU, and there an element that goes
/// in and out.
Cost fir_cost(const FirBlur& blur, const ImageShape& image, double elements) {
  constexpr double kCoreSeconds = 0.15e-9;
  constexpr double kGpuSeconds = 0.00008e-9;
  constexpr double kGpuElementSeconds = 0.004e-9;
  recursive_filter::FirExtents extents{image.height, image.width};
  const double pixels = static_cast<double>(image.height) * static_cast<double>(image.width);
  double terms = 0;
  for (const auto& stage : axis_by_axis(recursive_filter::plan_fir_stages(blur, extents))) {
    extents = extents_after(stage, extents);
    terms += static_cast<double>(extents.height) * static_cast<double>(extents.width) / pixels *
             static_cast<double>(stage.x.has_value() ? stage.x->taps : stage.y->taps);
  }
  return {elements * terms * kCoreSeconds, elements * (terms * kGpuSeconds + kGpuElementSeconds)};
}

/// False where a pixel is refused, or the images do not fit on the chip, which the report says.
template <class T, class E>
bool filter_images(E& executor, const ApplyRecursiveFilter::Plan& plan,
                   const FilterImages<const T, E::kSpace>& images, const FilterImages<T, E::kSpace>& filtered,
                   ApplyRecursiveFilter::Report& report) {
  if (plan.fir.has_value()) {
    report.method = v1::FILTER_FIR;
    report.truncation_bound = kFirTruncation / smallest_certainty(plan);
    if constexpr (E::kSpace == Space::kDevice) {
      fir_gaussian_blur<T>(executor, images, *plan.fir, filtered);
      return true;
    } else {
      const bool all_finite = fir_gaussian_blur<T>(executor, images, *plan.fir, filtered);
      const auto elements = static_cast<std::size_t>(plan.shape.elements());
      return refuse_after<T>(executor, all_finite, plan.non_finite, {images.first.data, elements},
                             report.non_finite);
    }
  }
  try {
    const RecursiveFilterRun run =
        apply_recursive_filter<T>(executor, images, plan.filter, filtered, plan.choice);
    report.method = wire_method(run.method);
    report.truncation_bound = run.truncation_bound / smallest_certainty(plan);
  } catch (const DoesNotFitOnChip& misfit) {
    report.tiles = misfit.tiles();
    report.tiles_on_chip = misfit.tiles_on_chip();
    return false;
  }
  return true;
}

template <class T, Space S>
FilterImages<const T, S> read_only(const FilterImages<T, S>& images) {
  const ImageView<T, S>& first = images.first;
  return {ImageView<const T, S>(first.data, first.height, first.width, first.channels), images.count};
}

/// The filtered images over their filtered certainties, where a boundary is FILTER_EXACT; halves are rounded
/// once. False as filter_images.
template <class T, class E>
bool filter_and_normalize(E& executor, const ApplyRecursiveFilter::Plan& plan,
                          const FilterImages<const T, E::kSpace>& images,
                          const FilterImages<T, E::kSpace>& result, ApplyRecursiveFilter::Report& report) {
  if (!plan.certainties.has_value()) return filter_images<T>(executor, plan, images, result, report);
  if constexpr (std::is_same_v<T, Float16>) {
    const auto elements = static_cast<std::size_t>(plan.shape.elements());
    const FilterImages<float, E::kSpace> floats(plan.image.view(executor.template scratch<float>(elements)),
                                                plan.images);
    const FilterImages<float, E::kSpace> filtered(plan.image.view(executor.template scratch<float>(elements)),
                                                  plan.images);
    normalize<Float16, float>(executor, images, {}, floats);
    if (!filter_images<float>(executor, plan, read_only(floats), filtered, report)) return false;
    normalize<float, Float16>(executor, read_only(filtered), *plan.certainties, result);
  } else {
    if (!filter_images<T>(executor, plan, images, result, report)) return false;
    normalize<T, T>(executor, read_only(result), *plan.certainties, result);
  }
  return true;
}

template <class T, Space S>
std::size_t filter_scratch_bytes(const ApplyRecursiveFilter::Plan& plan, const DeviceNumbers& device) {
  const FilterImages<const T, S> images(plan.image.view(Span<const T, S>()), plan.images);
  if (plan.fir.has_value()) return fir_gaussian_blur_scratch_bytes<T, S>(images, *plan.fir, device);
  return apply_recursive_filter_scratch_bytes<T, S>(images, plan.filter, device, plan.choice);
}

}  // namespace

std::vector<SourceField> ApplyRecursiveFilter::sources(const Request& request) {
  std::vector<SourceField> sources = {{"image", &request.image()}};
  if (request.has_accumulate()) sources.push_back({"accumulate", &request.accumulate()});
  return sources;
}

absl::StatusOr<ApplyRecursiveFilter::Plan> ApplyRecursiveFilter::validate(
    const Request& request, std::span<const InputArray> inputs) {
  Plan plan;
  plan.tells_method = request.tell_method();
  absl::Status status = read_images(inputs[0], plan);
  if (status.ok() && !request.has_y() && !request.has_x()) {
    status = bad_field("x", "is missing, and so is y; a filter for at least one of the axes is right");
  }
  if (status.ok()) status = read_sum(request, inputs, plan);
  if (status.ok()) status = read_filter(request, plan);
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
  if (plan.fir.has_value()) {
    const Cost blur = fir_cost(*plan.fir, plan.image, elements);
    const double more = plan.certainties.has_value() ? elements : 0;
    return {blur.core_seconds + more * kCoreSeconds, blur.gpu_seconds + more * kGpuSeconds};
  }
  const double terms = 2.0 * (1 + recursive_filter::kernel_order(plan.filter)) + (plan.accumulates ? 1 : 0) +
                       (plan.certainties.has_value() ? 1 : 0);
  return {elements * terms * kCoreSeconds, elements * terms * kGpuSeconds};
}

template <Space S>
std::size_t ApplyRecursiveFilter::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  return with_element(plan, [&]<class T>(T*) {
    const auto elements = static_cast<std::size_t>(plan.shape.elements());
    const std::size_t before = non_finite_scratch_bytes<T>(plan.non_finite, elements);
    if (!plan.certainties.has_value()) return before + filter_scratch_bytes<T, S>(plan, device);
    const std::size_t after = normalize_scratch_bytes<T>(*plan.certainties);
    if (!std::is_same_v<T, Float16>) return before + filter_scratch_bytes<T, S>(plan, device) + after;
    const std::size_t floats = ScratchSize().add<float>(elements).add<float>(elements).bytes();
    return before + floats + filter_scratch_bytes<float, S>(plan, device) + after;
  });
}

template <class E>
void ApplyRecursiveFilter::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                               const Outputs<E::kSpace>& outputs, Report& report) {
  with_element(plan, [&]<class T>(T*) {
    const auto policy = plan.fir.has_value() ? policy_before<E>(plan.non_finite) : plan.non_finite;
    const auto pixels =
        treat_non_finite<E, T>(executor, policy, inputs.template as<const T>(0), report.non_finite);
    if (E::kSpace == Space::kHost && report.non_finite.found()) return;
    const FilterImages<const T, E::kSpace> images(plan.image.view(pixels), plan.images);
    const FilterImages<T, E::kSpace> result(plan.image.view(outputs.template as<T>(0)), plan.images);
    if (!filter_and_normalize<T>(executor, plan, images, result, report)) return;
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

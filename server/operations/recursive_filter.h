#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "cumulus/v1/recursive_filter.pb.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct ApplyRecursiveFilter {
  using Request = v1::ApplyRecursiveFilterRequest;
  using Method = RecursiveFilterMethod;
  struct Report {
    std::int32_t method;  // a v1::RecursiveFilterMethod
    double truncation_bound;
    std::int64_t tiles;          // of the image
    std::int64_t tiles_on_chip;  // fewer: the image does not fit
  };
  struct Plan {
    ArrayShape shape;  // of the input and of the output
    ImageShape image;  // each
    std::int64_t images;
    RecursiveFilter filter;
    bool accumulates;
    double weight;
    RecursiveFilterChoice choice;
    bool tells_method;
  };
  static constexpr std::string_view kName = "ApplyRecursiveFilter";

  static std::vector<SourceField> sources(const Request& request) {
    std::vector<SourceField> sources = {{"image", &request.image()}};
    if (request.has_accumulate()) sources.push_back({"accumulate", &request.accumulate()});
    return sources;
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    InputArray one = inputs[0];
    std::int64_t images = 1;
    if (one.shape.extents.size() == 4) {
      images = one.shape.extents.front();
      one.shape.extents.erase(one.shape.extents.begin());
      if (images < 1) return bad_field(one.field, "has no images; a batch has at least one");
    }
    const auto image = read_image_shape(one, {v1::FLOAT32, v1::FLOAT16, v1::FLOAT64}, 4);
    if (!image.ok()) return image.status();
    if (!request.has_y() && !request.has_x()) {
      return bad_field("x", "is missing, and so is y; a filter for at least one of the axes is right");
    }
    if (absl::Status status = check_sum(request, inputs); !status.ok()) return status;
    Plan plan{inputs[0].shape,
              *image,
              images,
              {},
              request.has_accumulate(),
              request.has_weight() ? request.weight() : 1,
              {},
              request.tell_method()};
    if (request.has_y()) {
      if (auto status = read_axis(request.y(), "y", plan.filter.y); !status.ok()) return status;
    }
    if (request.has_x()) {
      if (auto status = read_axis(request.x(), "x", plan.filter.x); !status.ok()) return status;
    }
    if (absl::Status status = read_choice(request, plan); !status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    std::vector<OutputSpec> specs = {{"image", plan.shape}};
    if (plan.tells_method) {
      specs.push_back({"method", {v1::INT32, {1}}});
      specs.push_back({"truncation_bound", {v1::FLOAT64, {1}}});
    }
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return with_element(plan, [&]<class T>(T*) {
      return apply_recursive_filter_scratch_bytes<T, S>({plan.image.view(Span<const T, S>()), plan.images},
                                                        plan.filter, plan.choice);
    });
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    with_element(plan, [&]<class T>(T*) {
      try {
        const RecursiveFilterRun run = apply_recursive_filter<T>(
            executor, {plan.image.view(inputs.template as<const T>(0)), plan.images}, plan.filter,
            {plan.image.view(outputs.template as<T>(0)), plan.images}, plan.choice);
        report.method = wire_method(run.method);
        report.truncation_bound = run.truncation_bound;
      } catch (const DoesNotFitOnChip& misfit) {
        report.tiles = misfit.tiles();
        report.tiles_on_chip = misfit.tiles_on_chip();
        return std::size_t{0};
      }
      if (plan.accumulates) {
        add_scaled<T>(executor, inputs.template as<const T>(1), plan.weight, outputs.template as<T>(0));
      }
      if (plan.tells_method) {
        executor.upload(bytes_of(report.method), outputs.template as<std::byte>(1));
        executor.upload(bytes_of(report.truncation_bound), outputs.template as<std::byte>(2));
      }
      return std::size_t{0};
    });
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& report) {
    if (report.tiles_on_chip >= report.tiles) return absl::OkStatus();
    return no_answer(
        "DOES_NOT_FIT_ON_CHIP",
        absl::StrCat("method: is FILTER_ON_CHIP; this device holds ", report.tiles_on_chip,
                     " tiles of 64 x 64 pixels of one channel, the image has ", report.tiles,
                     "; FILTER_DECAYING or FILTER_TILED is right"),
        {{"tiles", absl::StrCat(report.tiles)}, {"tiles_on_chip", absl::StrCat(report.tiles_on_chip)}});
  }

 private:
  template <class T>
  static HostSpan<const std::byte> bytes_of(const T& value) {
    return {reinterpret_cast<const std::byte*>(&value), sizeof(T)};
  }

  /// Calls `body` with a null pointer to the image's elements.
  template <class Body>
  static std::size_t with_element(const Plan& plan, const Body& body) {
    if (plan.image.type == v1::FLOAT16) return body(static_cast<Float16*>(nullptr));
    if (plan.image.type == v1::FLOAT64) return body(static_cast<double*>(nullptr));
    return body(static_cast<float*>(nullptr));
  }

  static v1::RecursiveFilterMethod wire_method(Method method) {
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

  static absl::Status read_choice(const Request& request, Plan& plan) {
    if (request.has_max_truncation_error()) {
      plan.choice.max_truncation_error = request.max_truncation_error();
      if (!(request.max_truncation_error() >= 0 && request.max_truncation_error() <= 1)) {
        return bad_field(
            "max_truncation_error",
            absl::StrCat("is ", request.max_truncation_error(),
                         "; 0 (nothing) to 1 (as much as the image's largest magnitude) is right"));
      }
    }
    for (const Method method :
         {Method::kAutomatic, Method::kLines, Method::kTiled, Method::kOnChip, Method::kDecaying}) {
      if (wire_method(method) != request.method()) continue;
      plan.choice.method = method;
      return check_choice(plan);
    }
    return bad_field("method", absl::StrCat("is ", static_cast<int>(request.method()),
                                            "; FILTER_BY_LINES, FILTER_TILED, FILTER_ON_CHIP or "
                                            "FILTER_DECAYING is right"));
  }

  static absl::Status check_choice(const Plan& plan) {
    switch (obstacle_to(plan.filter, plan.image.height, plan.image.width, plan.image.type == v1::FLOAT64,
                        plan.choice)) {
      case MethodObstacle::kNone:
        break;
      case MethodObstacle::kTiles:
        return bad_field(
            "method",
            "goes by tiles, which take no FLOAT64 image, nor FILTER_REFLECT and FILTER_MIRROR for a "
            "filter whose two directions have different poles; FILTER_BY_LINES is right");
      case MethodObstacle::kTruncation:
        return bad_field(
            "max_truncation_error",
            absl::StrCat("is ", plan.choice.max_truncation_error,
                         "; the filter remembers too much of an image of this size for the method to "
                         "leave out no more; a larger one, or FILTER_TILED, is right"));
    }
    return absl::OkStatus();
  }

  static absl::Status check_sum(const Request& request, std::span<const InputArray> inputs) {
    if (!request.has_accumulate()) {
      if (!request.has_weight()) return absl::OkStatus();
      return bad_field("weight", "is set without accumulate, which it goes with");
    }
    if (!std::isfinite(request.weight())) {
      return bad_field("weight", absl::StrCat("is ", request.weight(), "; a finite number is right"));
    }
    const ArrayShape& image = inputs[0].shape;
    const ArrayShape& addend = inputs[1].shape;
    if (addend.type == image.type && addend.extents == image.extents) return absl::OkStatus();
    return bad_field("accumulate", absl::StrCat("is ", element_type_name(addend.type), " [",
                                                absl::StrJoin(addend.extents, ", "), "]; the image's ",
                                                element_type_name(image.type), " [",
                                                absl::StrJoin(image.extents, ", "), "] is right"));
  }

  static absl::Status read_axis(const v1::AxisFilter& wire, const std::string& path, AxisFilter& axis) {
    const auto boundary = read_boundary(wire.boundary());
    if (!boundary.has_value()) {
      return bad_field(
          path + ".boundary",
          absl::StrCat(
              "is ", static_cast<int>(wire.boundary()),
              "; FILTER_ZERO, FILTER_CLAMP, FILTER_REPEAT, FILTER_REFLECT or FILTER_MIRROR is right"));
    }
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

  static std::optional<FilterBoundary> read_boundary(v1::FilterBoundary wire) {
    switch (wire) {
      case v1::FILTER_BOUNDARY_UNSPECIFIED:
      case v1::FILTER_CLAMP:
        return FilterBoundary::kClamp;
      case v1::FILTER_ZERO:
        return FilterBoundary::kZero;
      case v1::FILTER_REPEAT:
        return FilterBoundary::kRepeat;
      case v1::FILTER_REFLECT:
        return FilterBoundary::kReflect;
      case v1::FILTER_MIRROR:
        return FilterBoundary::kMirror;
      default:
        return std::nullopt;
    }
  }

  static absl::Status read_gaussian(const v1::GaussianFilter& wire, const std::string& path,
                                    FilterBoundary boundary, AxisFilter& axis) {
    if (!(wire.sigma() >= kMinSigma && wire.sigma() <= kMaxSigma)) {
      return bad_field(path + ".gaussian.sigma", absl::StrCat("is ", wire.sigma(), "; ", kMinSigma, " to ",
                                                              kMaxSigma, " pixels is right"));
    }
    if (!v1::GaussianMethod_IsValid(wire.method())) {
      return bad_field(path + ".gaussian.method",
                       absl::StrCat("is ", static_cast<int>(wire.method()),
                                    "; GAUSSIAN_DERICHE or GAUSSIAN_YOUNG is right"));
    }
    const bool young = wire.method() == v1::GAUSSIAN_YOUNG;
    if (wire.derivative() < 0 || wire.derivative() > (young ? 0 : 2)) {
      return bad_field(
          path + ".gaussian.derivative",
          absl::StrCat("is ", wire.derivative(), "; 0, 1 or 2 is right, and only 0 with GAUSSIAN_YOUNG"));
    }
    axis = young ? gaussian_filter(wire.sigma(), boundary)
                 : deriche_filter(wire.sigma(), wire.derivative(), boundary);
    return absl::OkStatus();
  }

  static absl::Status read_bspline(const v1::BsplinePrefilter& wire, const std::string& path,
                                   FilterBoundary boundary, AxisFilter& axis) {
    if (wire.degree() != 3 && wire.degree() != 5) {
      return bad_field(path + ".bspline_prefilter.degree",
                       absl::StrCat("is ", wire.degree(), "; 3 or 5 is right"));
    }
    axis = bspline_prefilter(wire.degree(), boundary);
    return absl::OkStatus();
  }

  static absl::Status read_exponential(const v1::ExponentialFilter& wire, const std::string& path,
                                       FilterBoundary boundary, AxisFilter& axis) {
    if (!(wire.decay() >= 0 && wire.decay() <= kMaxPoleRadius)) {
      return bad_field(path + ".exponential.decay",
                       absl::StrCat("is ", wire.decay(), "; 0 to ", kMaxPoleRadius, " is right"));
    }
    axis = exponential_filter(wire.decay(), boundary);
    return absl::OkStatus();
  }

  static absl::Status read_feedback(const v1::FeedbackFilter& wire, const std::string& path,
                                    FilterBoundary boundary, AxisFilter& axis) {
    std::optional<double> gain;
    if (wire.has_gain()) gain = wire.gain();
    if (gain.has_value() && (!std::isfinite(*gain) || *gain == 0)) {
      return bad_field(path + ".feedback.gain",
                       absl::StrCat("is ", *gain, "; a finite number other than 0 is right"));
    }
    const auto read_coefficients = [](const auto& coefficients, const std::string& field) -> absl::Status {
      if (coefficients.size() > kMaxFilterOrder) {
        return bad_field(field, absl::StrCat("has ", coefficients.size(), " coefficients; at most ",
                                             kMaxFilterOrder, " are right"));
      }
      for (int k = 0; k < coefficients.size(); ++k) {
        if (!std::isfinite(coefficients[k])) {
          return bad_field(absl::StrCat(field, "[", k, "]"),
                           absl::StrCat("is ", coefficients[k], "; a finite number is right"));
        }
      }
      return absl::OkStatus();
    };
    absl::Status status = read_coefficients(wire.causal(), path + ".feedback.causal");
    if (status.ok()) status = read_coefficients(wire.anticausal(), path + ".feedback.anticausal");
    if (!status.ok()) return status;
    const auto span_of = [](const auto& field) {
      return std::span<const double>(field.data(), static_cast<std::size_t>(field.size()));
    };
    axis = feedback_filter(gain, span_of(wire.causal()), span_of(wire.anticausal()), boundary);
    status = require_stable(axis.causal, path + ".feedback.causal");
    if (status.ok()) status = require_stable(axis.anticausal, path + ".feedback.anticausal");
    return status;
  }

  static absl::Status require_stable(const OneWayFilter& poles, const std::string& field) {
    const auto pole = unstable_pole(poles);
    if (!pole.has_value()) return absl::OkStatus();
    return bad_field(field, absl::StrCat("has the pole ", pole->real(), pole->imag() < 0 ? " - " : " + ",
                                         std::abs(pole->imag()), "i, ", std::abs(*pole),
                                         " from the origin; at most ", kMaxPoleRadius, " is stable"));
  }
};

}  // namespace cumulus::server::ops

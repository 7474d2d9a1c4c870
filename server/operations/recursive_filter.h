#pragma once

#include <absl/strings/str_cat.h>

#include <cmath>
#include <complex>
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
  using Report = NoReport;
  struct Plan {
    ImageShape image;
    RecursiveFilter filter;
  };
  static constexpr std::string_view kName = "ApplyRecursiveFilter";

  static std::vector<SourceField> sources(const Request& request) { return {{"image", &request.image()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    const auto image = read_image_shape(inputs[0], {v1::FLOAT32}, 4);
    if (!image.ok()) return image.status();
    if (!request.has_y() && !request.has_x()) {
      return bad_field("x", "is missing, and so is y; a filter for at least one of the axes is right");
    }
    Plan plan{*image, {}};
    if (request.has_y()) {
      if (auto status = read_axis(request.y(), "y", plan.filter.y); !status.ok()) return status;
    }
    if (request.has_x()) {
      if (auto status = read_axis(request.x(), "x", plan.filter.x); !status.ok()) return status;
    }
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"image", plan.image.array(v1::FLOAT32)}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return apply_recursive_filter_scratch_bytes(plan.image.view(Span<const float, S>()), plan.filter);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    apply_recursive_filter(executor, plan.image.view(inputs.template as<const float>(0)), plan.filter,
                           plan.image.view(outputs.template as<float>(0)));
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
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
    axis = gaussian_filter(wire.sigma(), boundary);
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

  static absl::Status require_stable(const FilterPoles& poles, const std::string& field) {
    const auto pole = unstable_pole(poles);
    if (!pole.has_value()) return absl::OkStatus();
    return bad_field(field, absl::StrCat("has the pole ", pole->real(), pole->imag() < 0 ? " - " : " + ",
                                         std::abs(pole->imag()), "i, ", std::abs(*pole),
                                         " from the origin; at most ", kMaxPoleRadius, " is stable"));
  }
};

}  // namespace cumulus::server::ops

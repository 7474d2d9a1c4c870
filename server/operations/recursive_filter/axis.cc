#include "server/operations/recursive_filter/axis.h"

#include <cmath>
#include <complex>
#include <span>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_gaussian(const v1::GaussianFilter& wire, const std::string& path,
                           v1::GaussianMethod default_method, FilterBoundary boundary, EitherAxis& axis) {
  if (!(wire.sigma() >= kMinSigma && wire.sigma() <= kMaxSigma)) {
    return bad_field(path + ".gaussian.sigma",
                     concat("is ", wire.sigma(), "; ", kMinSigma, " to ", kMaxSigma, " pixels is right"));
  }
  const auto method = read_enum<v1::GaussianMethod>(path + ".gaussian.method", wire.method(),
                                                    {{v1::GAUSSIAN_METHOD_UNSPECIFIED, default_method},
                                                     {v1::GAUSSIAN_DERICHE, v1::GAUSSIAN_DERICHE},
                                                     {v1::GAUSSIAN_YOUNG, v1::GAUSSIAN_YOUNG},
                                                     {v1::GAUSSIAN_FIR, v1::GAUSSIAN_FIR}});
  if (!method.ok()) return method.status();
  if (wire.derivative() < 0 || wire.derivative() > (*method == v1::GAUSSIAN_DERICHE ? 2 : 0)) {
    return bad_field(path + ".gaussian.derivative",
                     concat("is ", wire.derivative(),
                            "; 0, 1 or 2 is right, and only 0 with GAUSSIAN_YOUNG and GAUSSIAN_FIR"));
  }
  if (*method == v1::GAUSSIAN_FIR) {
    axis.fir = FirAxis{wire.sigma(), boundary};
  } else if (*method == v1::GAUSSIAN_YOUNG) {
    axis.recursive = gaussian_filter(wire.sigma(), boundary);
  } else {
    axis.recursive = deriche_filter(wire.sigma(), wire.derivative(), boundary);
  }
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

/// Whether the kernel is an average, of which one over what lies inside can be taken.
bool averages(const v1::AxisFilter& wire) {
  return wire.kernel_case() == v1::AxisFilter::kExponential ||
         (wire.kernel_case() == v1::AxisFilter::kGaussian && wire.gaussian().derivative() == 0);
}

absl::Status read_boundary(const v1::AxisFilter& wire, const std::string& path, FilterBoundary& boundary,
                           bool& inside_only) {
  const std::string field = path + ".boundary";
  inside_only = wire.boundary() == v1::FILTER_EXACT;
  if (inside_only && !averages(wire)) {
    return bad_field(field,
                     "is FILTER_EXACT, the mean of what lies inside, which a gaussian that blurs and an "
                     "exponential have; FILTER_ZERO, FILTER_CLAMP, FILTER_REPEAT, FILTER_REFLECT or "
                     "FILTER_MIRROR is right here");
  }
  const auto read = read_enum<FilterBoundary>(field, wire.boundary(),
                                              {{v1::FILTER_BOUNDARY_UNSPECIFIED, FilterBoundary::kClamp},
                                               {v1::FILTER_ZERO, FilterBoundary::kZero},
                                               {v1::FILTER_CLAMP, FilterBoundary::kClamp},
                                               {v1::FILTER_REPEAT, FilterBoundary::kRepeat},
                                               {v1::FILTER_REFLECT, FilterBoundary::kReflect},
                                               {v1::FILTER_MIRROR, FilterBoundary::kMirror},
                                               {v1::FILTER_EXACT, FilterBoundary::kZero}});
  if (!read.ok()) return read.status();
  boundary = *read;
  return absl::OkStatus();
}

}  // namespace

absl::Status read_axis(const v1::AxisFilter& wire, const std::string& path, v1::GaussianMethod gaussian,
                       EitherAxis& axis) {
  FilterBoundary boundary{};
  const absl::Status status = read_boundary(wire, path, boundary, axis.inside_only);
  if (!status.ok()) return status;
  switch (wire.kernel_case()) {
    case v1::AxisFilter::kGaussian:
      return read_gaussian(wire.gaussian(), path, gaussian, boundary, axis);
    case v1::AxisFilter::kBsplinePrefilter:
      return read_bspline(wire.bspline_prefilter(), path, boundary, axis.recursive);
    case v1::AxisFilter::kExponential:
      return read_exponential(wire.exponential(), path, boundary, axis.recursive);
    case v1::AxisFilter::kFeedback:
      return read_feedback(wire.feedback(), path, boundary, axis.recursive);
    case v1::AxisFilter::KERNEL_NOT_SET:
      break;
  }
  return bad_field(path, "has no kernel; gaussian, bspline_prefilter, exponential or feedback is right");
}

}  // namespace cumulus::server::ops

#include "cumulus/recursive_filter.h"

#include "cumulus/v1/recursive_filter.pb.h"
#include "library/operation_access.h"
#include "library/wire.h"

namespace cumulus {
namespace {

v1::FilterBoundary to_wire(ImageBoundary boundary) {
  switch (boundary) {
    case ImageBoundary::kZero:
      return v1::FILTER_ZERO;
    case ImageBoundary::kClamp:
      return v1::FILTER_CLAMP;
    case ImageBoundary::kRepeat:
      return v1::FILTER_REPEAT;
    case ImageBoundary::kReflect:
      return v1::FILTER_REFLECT;
    case ImageBoundary::kMirror:
      return v1::FILTER_MIRROR;
    case ImageBoundary::kExact:
      return v1::FILTER_EXACT;
  }
  return v1::FILTER_BOUNDARY_UNSPECIFIED;
}

v1::RecursiveFilterMethod to_wire(FilterMethod method) {
  switch (method) {
    case FilterMethod::kFastest:
      break;
    case FilterMethod::kLines:
      return v1::FILTER_BY_LINES;
    case FilterMethod::kTiled:
      return v1::FILTER_TILED;
    case FilterMethod::kOnChip:
      return v1::FILTER_ON_CHIP;
    case FilterMethod::kDecaying:
      return v1::FILTER_DECAYING;
    case FilterMethod::kFir:
      return v1::FILTER_FIR;
  }
  return v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED;
}

v1::GaussianMethod to_wire(GaussianMethod method) {
  switch (method) {
    case GaussianMethod::kDefault:
      return v1::GAUSSIAN_METHOD_UNSPECIFIED;
    case GaussianMethod::kDeriche:
      return v1::GAUSSIAN_DERICHE;
    case GaussianMethod::kYoung:
      return v1::GAUSSIAN_YOUNG;
    case GaussianMethod::kFir:
      return v1::GAUSSIAN_FIR;
  }
  return v1::GAUSSIAN_METHOD_UNSPECIFIED;
}

/// Writes the kernel that the variant holds.
struct KernelEncoder {
  v1::AxisFilter& out;

  void operator()(const GaussianKernel& kernel) const {
    v1::GaussianFilter& gaussian = *out.mutable_gaussian();
    gaussian.set_sigma(kernel.sigma);
    gaussian.set_method(to_wire(kernel.method));
    gaussian.set_derivative(kernel.derivative);
  }
  void operator()(const BsplinePrefilterKernel& kernel) const {
    out.mutable_bspline_prefilter()->set_degree(kernel.degree);
  }
  void operator()(const ExponentialKernel& kernel) const {
    out.mutable_exponential()->set_decay(kernel.decay);
  }
  void operator()(const FeedbackKernel& kernel) const {
    v1::FeedbackFilter& feedback = *out.mutable_feedback();
    if (kernel.gain.has_value()) feedback.set_gain(*kernel.gain);
    feedback.mutable_causal()->Add(kernel.causal.begin(), kernel.causal.end());
    feedback.mutable_anticausal()->Add(kernel.anticausal.begin(), kernel.anticausal.end());
  }
};

void encode(const AxisKernel& axis, v1::AxisFilter& out) {
  std::visit(KernelEncoder{out}, axis.kernel);
  out.set_boundary(to_wire(axis.boundary));
}

}  // namespace

Operation apply_recursive_filter(const Source& image, const RecursiveFilterOptions& options) {
  v1::ApplyRecursiveFilterRequest request;
  OperationInputs inputs;
  inputs.encode(image, *request.mutable_image());
  if (options.y.has_value()) encode(*options.y, *request.mutable_y());
  if (options.x.has_value()) encode(*options.x, *request.mutable_x());
  if (options.accumulate.has_value()) {
    inputs.encode(*options.accumulate, *request.mutable_accumulate());
  }
  // Without `accumulate` the server refuses a weight, rather than that it is lost in silence.
  if (options.weight != 1) request.set_weight(options.weight);
  request.set_method(to_wire(options.method));
  if (options.max_truncation_error.has_value()) {
    request.set_max_truncation_error(*options.max_truncation_error);
  }
  request.set_tell_method(options.tell_method);
  request.set_non_finite(wire::to_wire(options.non_finite));
  return OperationAccess::make("ApplyRecursiveFilter", request, inputs);
}

}  // namespace cumulus

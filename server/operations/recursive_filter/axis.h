#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "cumulus/v1/recursive_filter.pb.h"
#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/fir/gaussian.h"

namespace cumulus::server::ops {

/// What an axis of a request asks for: one of the two.
struct EitherAxis {
  AxisFilter recursive;
  std::optional<FirAxis> fir;
  bool inside_only = false;  // FILTER_EXACT; the boundary of both is kZero then
};

/// `path` is the field's name, for refusals; `gaussian` is the method of a Gaussian that names none.
absl::Status read_axis(const v1::AxisFilter& wire, const std::string& path, v1::GaussianMethod gaussian,
                       EitherAxis& axis);

}  // namespace cumulus::server::ops

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeindex>

#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/math/truncation.h"

// What follows from a filter and the extents of the images, whatever the GPU and the method.

namespace cumulus::recursive_filter {

/// True where tiles can do it: a boundary that folds the image back needs runs of both filters in both
/// directions, which the tiles hold only where these are the same.
bool tiles_serve(const RecursiveFilter& filter);

struct FilterAxes {
  Precision precision;
  int order;
  AxisPlan y, x;
};

/// A filter's numbers in the form that its kernels take: made, in long double, by the first call that runs
/// them, and kept. Each kernel has a T of its own.
class KernelConstants {
 public:
  template <class T, class Make>
  const T& get(const Make& make) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const void>& kept = kept_[typeid(T)];
    if (kept == nullptr) kept = std::make_shared<const T>(make());
    return *static_cast<const T*>(kept.get());
  }

 private:
  std::mutex mutex_;
  std::map<std::type_index, std::shared_ptr<const void>> kept_;
};

/// A filter for images of one height and width. What takes long is computed when it is first asked for, in
/// any thread.
class PlannedFilter {
 public:
  /// Throws std::invalid_argument where a pole is unstable.
  PlannedFilter(const RecursiveFilter& filter, std::int64_t height, std::int64_t width, bool of_doubles,
                double max_truncation_error);

  const FilterAxes& axes() const { return axes_; }
  bool single() const { return axes_.precision == Precision::kSingle; }
  /// Tiles hold floats.
  bool goes_by_tiles() const { return goes_by_tiles_; }
  /// Truncated windows that leave out no more than `max_truncation_error`; none: they would be too wide.
  const std::optional<Windows>& windows() const;
  KernelConstants& constants() const { return constants_; }

 private:
  FilterAxes axes_;
  double max_truncation_error_;
  bool goes_by_tiles_;
  mutable std::once_flag windows_once_;
  mutable std::optional<Windows> windows_;
  mutable KernelConstants constants_;
};

/// It takes longer to make than small images to filter: those of the last few calls are kept.
std::shared_ptr<const PlannedFilter> planned_filter(const RecursiveFilter& filter, std::int64_t height,
                                                    std::int64_t width, bool of_doubles,
                                                    double max_truncation_error);

}  // namespace cumulus::recursive_filter

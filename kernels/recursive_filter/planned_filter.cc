#include "kernels/recursive_filter/planned_filter.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cumulus::recursive_filter {
namespace {

bool same(const OneWayFilter& a, const OneWayFilter& b) {
  return a.order == b.order && std::equal(a.poles.begin(), a.poles.begin() + a.order, b.poles.begin());
}

FilterAxes axes_of(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                   Precision precision) {
  const int order = kernel_order(filter);
  return {precision, order, plan_axis(filter.y, height, order, precision),
          plan_axis(filter.x, width, order, precision)};
}

/// Those of the last few calls, of all threads.
class FilterCache {
 public:
  struct Call {
    RecursiveFilter filter;
    std::int64_t height, width;
    bool of_doubles;
    double max_truncation_error;

    bool operator==(const Call&) const = default;
  };
  using Planned = std::shared_ptr<const PlannedFilter>;

  Planned find(const Call& call) {
    const std::lock_guard lock(mutex_);
    const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& a) { return a.call == call; });
    if (kept == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), kept, kept + 1);
    return kept_.front().planned;
  }
  void keep(const Call& call, const Planned& planned) {
    const std::lock_guard lock(mutex_);
    std::rotate(kept_.begin(), kept_.end() - 1, kept_.end());
    kept_.front() = {call, planned};
  }

 private:
  struct Kept {
    Call call;
    Planned planned;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_ = std::vector<Kept>(16);
};

}  // namespace

bool tiles_serve(const RecursiveFilter& filter) {
  const auto serves = [](const AxisFilter& axis) {
    const bool folds = axis.boundary == FilterBoundary::kReflect || axis.boundary == FilterBoundary::kMirror;
    return !folds || same(axis.causal, axis.anticausal);
  };
  return serves(filter.y) && serves(filter.x);
}

PlannedFilter::PlannedFilter(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                             bool of_doubles, double max_truncation_error)
    : axes_(axes_of(filter, height, width, of_doubles ? Precision::kDouble : precision_for(filter))),
      max_truncation_error_(max_truncation_error),
      goes_by_tiles_(!of_doubles && tiles_serve(filter)) {}

const std::optional<Windows>& PlannedFilter::windows() const {
  std::call_once(windows_once_, [&] { windows_ = plan_windows(axes_.y, axes_.x, max_truncation_error_); });
  return windows_;
}

std::shared_ptr<const PlannedFilter> planned_filter(const RecursiveFilter& filter, std::int64_t height,
                                                    std::int64_t width, bool of_doubles,
                                                    double max_truncation_error) {
  static FilterCache kept;
  const FilterCache::Call call{filter, height, width, of_doubles, max_truncation_error};
  FilterCache::Planned planned = kept.find(call);
  if (planned == nullptr) {
    planned = std::make_shared<const PlannedFilter>(filter, height, width, of_doubles, max_truncation_error);
    kept.keep(call, planned);
  }
  return planned;
}

}  // namespace cumulus::recursive_filter

#include "kernels/recursive_filter/method.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cumulus::recursive_filter {
namespace {

bool same(const OneWayFilter& a, const OneWayFilter& b) {
  return a.order == b.order && std::equal(a.poles.begin(), a.poles.begin() + a.order, b.poles.begin());
}

std::int64_t tiles_of(std::int64_t pixels) { return (pixels + kTile - 1) / kTile; }

RecursiveFilterPlan make_plan(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                              bool of_doubles, const RecursiveFilterChoice& choice) {
  using Method = RecursiveFilterMethod;
  const Precision precision = of_doubles ? Precision::kDouble : precision_for(filter);
  const int order = kernel_order(filter);
  RecursiveFilterPlan plan{precision,
                           order,
                           plan_axis(filter.y, height, order, precision),
                           plan_axis(filter.x, width, order, precision),
                           MethodObstacle::kNone,
                           Method::kLines,
                           std::nullopt,
                           false,
                           std::make_shared<KernelConstants>(),
                           std::make_shared<KernelConstants>(),
                           nullptr};
  if (choice.method == Method::kLines) return plan;
  const bool automatic = choice.method == Method::kAutomatic;
  const auto stopped_by = [&](MethodObstacle obstacle) {
    if (!automatic) plan.obstacle = obstacle;
    return plan;
  };
  if (of_doubles || !tiles_serve(filter)) return stopped_by(MethodObstacle::kTiles);
  plan.method = Method::kTiled;
  const bool single = precision == Precision::kSingle;
  const bool is_small =
      tiles_of(height) * tiles_of(width) <= (single ? kMaxTilesByWindows : kMaxTilesByWindowsInDouble);
  const bool strips_may_do = single && strip_blocks() > 0;
  const auto in_tiles = [&] {
    if (strips_may_do) plan.exact_strips = plan_exact_strips(filter, plan);
    return plan;
  };
  if (choice.method == Method::kTiled || (automatic && !is_small && !strips_may_do)) return in_tiles();
  plan.windows = plan_windows(plan.y, plan.x, choice.max_truncation_error);
  if (!plan.windows.has_value()) return automatic ? in_tiles() : stopped_by(MethodObstacle::kTruncation);
  const bool in_strips = strips_may_do && plan.windows->of_strips.has_value() &&
                         (choice.method == Method::kDecaying || (automatic && !is_small));
  // Tiles are faster than the two passes of large images, and than windows that are wide.
  const bool windows_are_wide = std::max(plan.windows->y, plan.windows->x) > kMaxWindow;
  if (automatic && !in_strips && (!is_small || windows_are_wide)) return in_tiles();
  plan.method = in_strips ? Method::kDecaying : Method::kOnChip;
  if (in_strips && direct_form_serves(plan.y, plan.x)) use_direct_form(filter, plan);
  return plan;
}

/// The plans of the last few calls, of all threads.
class PlanCache {
 public:
  struct Call {
    RecursiveFilter filter;
    std::int64_t height, width;
    bool of_doubles;
    RecursiveFilterChoice choice;

    bool operator==(const Call&) const = default;
  };
  using Plan = std::shared_ptr<const RecursiveFilterPlan>;

  Plan find(const Call& call) {
    const std::lock_guard lock(mutex_);
    const auto kept =
        std::find_if(plans_.begin(), plans_.end(), [&](const Kept& a) { return a.call == call; });
    if (kept == plans_.end()) return nullptr;
    std::rotate(plans_.begin(), kept, kept + 1);
    return plans_.front().plan;
  }
  void keep(const Call& call, const Plan& plan) {
    const std::lock_guard lock(mutex_);
    std::rotate(plans_.begin(), plans_.end() - 1, plans_.end());
    plans_.front() = {call, plan};
  }

 private:
  struct Kept {
    Call call;
    Plan plan;
  };
  std::mutex mutex_;
  std::vector<Kept> plans_ = std::vector<Kept>(16);
};

}  // namespace

bool tiles_serve(const RecursiveFilter& filter) {
  const auto serves = [](const AxisFilter& axis) {
    const bool folds = axis.boundary == FilterBoundary::kReflect || axis.boundary == FilterBoundary::kMirror;
    return !folds || same(axis.causal, axis.anticausal);
  };
  return serves(filter.y) && serves(filter.x);
}

std::shared_ptr<const RecursiveFilterPlan> plan_on_gpu(const RecursiveFilter& filter, std::int64_t height,
                                                       std::int64_t width, bool of_doubles,
                                                       const RecursiveFilterChoice& choice) {
  static PlanCache kept;
  const PlanCache::Call call{filter, height, width, of_doubles, choice};
  PlanCache::Plan plan = kept.find(call);
  if (plan == nullptr) {
    plan = std::make_shared<const RecursiveFilterPlan>(make_plan(filter, height, width, of_doubles, choice));
    kept.keep(call, plan);
  }
  return plan;
}

std::shared_ptr<const RecursiveFilterPlan> require_plan_on_gpu(const RecursiveFilter& filter,
                                                               std::int64_t height, std::int64_t width,
                                                               bool of_doubles,
                                                               const RecursiveFilterChoice& choice) {
  const auto plan = plan_on_gpu(filter, height, width, of_doubles, choice);
  const auto refuse = [](const std::string& why) { throw std::invalid_argument("recursive_filter: " + why); };
  switch (plan->obstacle) {
    case MethodObstacle::kNone:
      break;
    case MethodObstacle::kTiles:
      refuse(
          "tiles do not serve images of double, nor a boundary that folds the image back (reflect, mirror) "
          "for "
          "a filter whose directions differ; the line method does");
      break;
    case MethodObstacle::kTruncation:
      refuse("the filter remembers too much of this image to leave out no more than " +
             std::to_string(choice.max_truncation_error) + "; the tiled method leaves out nothing");
      break;
  }
  return plan;
}

}  // namespace cumulus::recursive_filter

namespace cumulus {

DoesNotFitOnChip::DoesNotFitOnChip(std::int64_t tiles, std::int64_t tiles_on_chip)
    : std::invalid_argument("recursive_filter: the on-chip method holds " + std::to_string(tiles_on_chip) +
                            " tiles of 64 x 64 pixels of one channel on this device; the image has " +
                            std::to_string(tiles)),
      tiles_(tiles),
      tiles_on_chip_(tiles_on_chip) {}

MethodObstacle obstacle_to(const RecursiveFilter& filter, std::int64_t height, std::int64_t width,
                           bool of_doubles, const RecursiveFilterChoice& choice) {
  return recursive_filter::plan_on_gpu(filter, height, width, of_doubles, choice)->obstacle;
}

}  // namespace cumulus

#include "server/runtime/cost_history.h"

#include <algorithm>
#include <cmath>

namespace cumulus::server {
namespace {

/// Weight of the newest call. In logarithms, and with a limit on the surprise, so that one call that stalled
/// for seconds changes the ratio at most to double or half of what it was.
constexpr double kGain = 0.25;
constexpr double kMaxSurprise = 16;
/// Of a closed form and a device that do not fit each other at all.
constexpr double kMaxRatio = 1000;

}  // namespace

double CostHistory::corrected(std::string_view operation, double seconds) const {
  return seconds * of(operation).ratio;
}

void CostHistory::record(std::string_view operation, double predicted, double measured) {
  if (!(predicted > 0 && measured > 0)) return;
  const std::lock_guard lock(mutex_);
  auto found = records_.find(operation);
  if (found == records_.end()) found = records_.emplace(std::string(operation), Kept()).first;
  Kept& record = found->second;
  record.last_prediction = predicted * record.ratio;
  record.last_measured = measured;
  const double surprise = std::clamp(measured / record.last_prediction, 1 / kMaxSurprise, kMaxSurprise);
  record.ratio = std::clamp(record.ratio * std::pow(surprise, kGain), 1 / kMaxRatio, kMaxRatio);
  ++record.calls;
  std::erase_if(record.latest, [predicted](const Call& each) { return each.predicted == predicted; });
  record.latest.insert(record.latest.begin(), {predicted, measured});
  if (record.latest.size() > kLatest) record.latest.pop_back();
}

std::optional<double> CostHistory::last_of(std::string_view operation, double predicted) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(operation);
  if (found == records_.end()) return std::nullopt;
  for (const Call& call : found->second.latest) {
    if (call.predicted == predicted) return call.measured;
  }
  return std::nullopt;
}

CostHistory::Record CostHistory::of(std::string_view operation) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(operation);
  return found != records_.end() ? Record(found->second) : Record();
}

}  // namespace cumulus::server

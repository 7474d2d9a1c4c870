#include "library/connection_count.h"

#include <algorithm>
#include <iterator>

namespace cumulus {
namespace {

/// Below, an array is over before a second connection helps, and its rate says nothing.
constexpr std::size_t kLeast = std::size_t{16} << 20;

}  // namespace

int ConnectionCount::choose(std::size_t bytes) {
  if (bytes < kLeast) return kChoices[0];
  const std::lock_guard lock(mutex_);
  std::size_t choices = bytes < 2 * kLeast ? 2 : kChoices.size();
  // What others do changes: now and then each number is tried again.
  constexpr std::size_t kTurns = 32;
  if (++turn_ % kTurns == 0) return kChoices[turn_ / kTurns % choices];
  // The greatest of those with the fewest tries, so that all meet the same disturbances.
  const auto last = std::make_reverse_iterator(tries_.begin() + static_cast<std::ptrdiff_t>(choices));
  const auto fewest = std::min_element(last, tries_.rend());
  if (*fewest < kTries) return kChoices[static_cast<std::size_t>(tries_.rend() - fewest) - 1];
  const double best =
      *std::max_element(rates_.begin(), rates_.begin() + static_cast<std::ptrdiff_t>(choices));
  // A tenth more is not worth another connection.
  const auto enough =
      std::find_if(rates_.begin(), rates_.end(), [&](double rate) { return rate >= 0.9 * best; });
  return kChoices[static_cast<std::size_t>(enough - rates_.begin())];
}

void ConnectionCount::note(int connections, std::size_t bytes, absl::Duration took) {
  const auto choice = std::find(kChoices.begin(), kChoices.end(), connections);
  if (bytes < kLeast || choice == kChoices.end()) return;
  const double rate = static_cast<double>(bytes) / std::max(absl::ToDoubleSeconds(took), 1e-6);
  const auto index = static_cast<std::size_t>(choice - kChoices.begin());
  const std::lock_guard lock(mutex_);
  double& known = rates_[index];
  // Whatever else goes on makes transfers slower, never faster: a better rate counts at once, a worse one,
  // once the tries are over, by half.
  known = std::max(rate, tries_[index] < kTries ? known : (known + rate) / 2);
  tries_[index] = std::min(tries_[index] + 1, kTries);
}

}  // namespace cumulus

#pragma once

#include <chrono>
#include <future>
#include <utility>

namespace cumulus {

/// While it lives, its thread looks for something all the time that others will have done at once. A core
/// that sleeps takes longer to wake than a short call's last steps take.
class BriefWait {
 public:
  /// As long as the server waits so for a short call's kernels, and the way to it and back.
  static constexpr std::chrono::microseconds kBriefly{400};
  explicit BriefWait(std::chrono::microseconds limit = kBriefly);
  ~BriefWait();
  BriefWait(const BriefWait&) = delete;
  BriefWait& operator=(const BriefWait&) = delete;

  /// False once it is time to sleep; at once where this process has few cores, which others need meanwhile,
  /// or another thread looks for something already.
  bool goes_on() const;

 private:
  const bool only_one_;
  const std::chrono::steady_clock::time_point end_;
};

/// Looks for what the future will have, so long at most.
template <class T>
void look_for(const std::future<T>& future, std::chrono::microseconds limit = BriefWait::kBriefly) {
  const BriefWait wait(limit);
  while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready && wait.goes_on()) continue;
}

/// What the future has, of a call that may be a short one.
template <class T>
T get_soon(std::future<T> future) {
  look_for(future);
  return future.get();
}

}  // namespace cumulus

#pragma once

#include <chrono>
#include <future>
#include <utility>

#include "proto/brief_look.h"

namespace cumulus {

/// A BriefLook of one thread of the library at a time.
class BriefWait {
 public:
  /// As long as the server waits so for a short call's kernels, and the way to it and back.
  static constexpr std::chrono::microseconds kBriefly{400};
  explicit BriefWait(std::chrono::microseconds limit = kBriefly);

  bool goes_on() const { return look_.goes_on(); }

 private:
  const BriefLook look_;
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

#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace cumulus::testing {

/// True once `condition` is, within ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace cumulus::testing

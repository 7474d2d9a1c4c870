#pragma once

#include <absl/time/time.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace cumulus {

/// How many connections a transfer takes: by its size, and by what numbers of them have brought before, as
/// few cores or a slow wire gain nothing by more. Each number is tried a few times, of which the best counts:
/// the first transfer makes the connections, and the next ones still touch memory for the first time.
/// Thread-safe.
class ConnectionCount {
 public:
  static constexpr int kMost = 16;  // that a caller may ask for

  int choose(std::size_t bytes);
  /// That a transfer over so many has ended well.
  void note(int connections, std::size_t bytes, absl::Duration took);

 private:
  static constexpr std::array kChoices = {1, 2, 4};
  static constexpr int kTries = 3;  // of each, before rates are compared

  std::mutex mutex_;
  std::array<int, kChoices.size()> tries_ = {};     // at most kTries
  std::array<double, kChoices.size()> rates_ = {};  // bytes a second
  std::size_t turn_ = 0;
};

}  // namespace cumulus

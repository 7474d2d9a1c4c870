#pragma once

#include <absl/time/time.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace cumulus {

/// How many connections a transfer takes: by its size, and by what numbers of them have brought before, as
/// few cores or a slow wire gain nothing by more. Thread-safe.
class ConnectionCount {
 public:
  static constexpr int kMost = 16;  // that a caller may ask for

  int choose(std::size_t bytes);
  /// That a transfer over so many has ended well.
  void note(int connections, std::size_t bytes, absl::Duration took);

 private:
  static constexpr std::array kChoices = {1, 2, 4};

  std::mutex mutex_;
  std::array<double, kChoices.size()> rates_ = {};  // bytes a second; 0: unknown
  std::size_t turn_ = 0;
};

}  // namespace cumulus

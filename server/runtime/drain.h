#pragma once

#include <absl/status/status.h>

#include <atomic>

namespace cumulus::server {

/// UNAVAILABLE (DRAINING), with the time after which another server may answer here.
absl::Status draining();

/// How far a server is on its way to its end. Thread-safe.
class Drain {
 public:
  /// From now on sessions and calls without one are not begun any more.
  void refuse_new() { refuses_ = true; }
  /// From now on what runs is to end, too.
  void end_all() {
    refuses_ = true;
    over_ = true;
  }

  /// draining() once refuse_new() has been called.
  absl::Status admits() const { return refuses_ ? draining() : absl::OkStatus(); }
  bool over() const { return over_; }

 private:
  std::atomic<bool> refuses_ = false;
  std::atomic<bool> over_ = false;
};

}  // namespace cumulus::server

#pragma once

#include <atomic>
#include <chrono>

#include "kernels/core/slice.h"
#include "tests/support/executors.h"

namespace cumulus::testing {

/// Wants each slice to end after a millisecond, and counts them.
class ImpatientTurns final : public Turns {
 public:
  void yield() override {
    ++slices_;
    begin_ = std::chrono::steady_clock::now();
  }
  bool wanted() const override {
    return std::chrono::steady_clock::now() - begin_.load() >= std::chrono::milliseconds(1);
  }
  int slices() const { return slices_; }

 private:
  int slices_ = 0;
  std::atomic<std::chrono::steady_clock::time_point> begin_ = std::chrono::steady_clock::now();
};

/// A backend whose calls take as long on many cores as on one.
class OneThread {
 public:
  static constexpr Space kSpace = Space::kHost;
  CpuExecutor& executor() { return executor_; }

 private:
  CpuExecutor executor_{1};
};

}  // namespace cumulus::testing

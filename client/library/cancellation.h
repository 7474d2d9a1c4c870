#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cumulus/operation.h"

namespace cumulus {

/// While it lives, a cancellation calls `stop` (once, from the cancelling thread, or at once where it
/// was cancelled before). `stop` may still run while the scope is being left: it owns what it touches.
class CancellationScope {
 public:
  CancellationScope() = default;
  CancellationScope(const std::optional<Cancellation>& cancellation, std::function<void()> stop);
  CancellationScope(CancellationScope&& other) noexcept;
  CancellationScope& operator=(CancellationScope&& other) noexcept;
  ~CancellationScope();

 private:
  void leave();

  std::optional<Cancellation> cancellation_;
  std::uint64_t id_ = 0;
};

}  // namespace cumulus

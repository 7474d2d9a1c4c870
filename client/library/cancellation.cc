#include "library/cancellation.h"

#include <map>
#include <mutex>
#include <utility>

namespace cumulus {

struct Cancellation::State {
  std::mutex mutex;
  bool cancelled = false;
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, std::function<void()>> stops;
};

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

void Cancellation::cancel() const {
  std::map<std::uint64_t, std::function<void()>> stops;
  {
    const std::lock_guard lock(state_->mutex);
    state_->cancelled = true;
    stops.swap(state_->stops);
  }
  for (const auto& [id, stop] : stops) stop();
}

bool Cancellation::cancelled() const {
  const std::lock_guard lock(state_->mutex);
  return state_->cancelled;
}

CancellationScope::CancellationScope(const std::optional<Cancellation>& cancellation,
                                     std::function<void()> stop)
    : cancellation_(cancellation) {
  if (!cancellation_.has_value()) return;
  {
    const std::lock_guard lock(cancellation_->state_->mutex);
    if (!cancellation_->state_->cancelled) {
      id_ = cancellation_->state_->next_id++;
      cancellation_->state_->stops.emplace(id_, std::move(stop));
      return;
    }
  }
  stop();
}

CancellationScope::CancellationScope(CancellationScope&& other) noexcept
    : cancellation_(std::exchange(other.cancellation_, std::nullopt)), id_(other.id_) {}

CancellationScope& CancellationScope::operator=(CancellationScope&& other) noexcept {
  if (this != &other) {
    leave();
    cancellation_ = std::exchange(other.cancellation_, std::nullopt);
    id_ = other.id_;
  }
  return *this;
}

CancellationScope::~CancellationScope() { leave(); }

void CancellationScope::leave() {
  if (!cancellation_.has_value()) return;
  const std::lock_guard lock(cancellation_->state_->mutex);
  cancellation_->state_->stops.erase(id_);
}

}  // namespace cumulus

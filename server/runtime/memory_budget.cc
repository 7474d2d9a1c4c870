#include "server/runtime/memory_budget.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cassert>

#include "server/pipeline/errors.h"

namespace cumulus::server {

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    release();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    kept_ = std::exchange(other.kept_, false);
  }
  return *this;
}

Reservation Reservation::split(std::size_t bytes) {
  assert(bytes <= bytes_ && !kept_);
  bytes_ -= bytes;
  return {budget_, bytes};
}

void Reservation::release() {
  if (budget_ != nullptr && bytes_ > 0) budget_->give_back(bytes_, kept_);
  bytes_ = 0;
  kept_ = false;
  budget_.reset();
}

void Reservation::set_kept(bool kept) {
  if (kept == kept_) return;
  kept_ = kept;
  if (budget_ != nullptr) budget_->count_kept(bytes_, kept);
}

std::shared_ptr<MemoryBudget> MemoryBudget::create(std::string subject, std::size_t limit_bytes) {
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(std::move(subject), limit_bytes));
}

absl::StatusOr<Reservation> MemoryBudget::reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_ - reserved_) return shortage_locked(bytes);
  reserved_ += bytes;
  high_water_ = std::max(high_water_, reserved_);
  return Reservation(shared_from_this(), bytes);
}

absl::Status MemoryBudget::shortage(std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return shortage_locked(bytes);
}

absl::Status MemoryBudget::shortage_locked(std::size_t bytes) const {
  const bool never = bytes > limit_;
  return exhausted(subject_, absl::StrCat("needs ", bytes, " bytes; ", subject_, " has ", limit_,
                                          " bytes, of which ", limit_ - reserved_, " are free: ",
                                          never ? "use a smaller input or a larger limit"
                                                : "delete buffers that are no longer needed, or try later"));
}

std::size_t MemoryBudget::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

std::size_t MemoryBudget::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

std::size_t MemoryBudget::high_water_bytes() const {
  const std::lock_guard lock(mutex_);
  return high_water_;
}

void MemoryBudget::give_back(std::size_t bytes, bool kept) {
  const std::lock_guard lock(mutex_);
  assert(bytes <= reserved_);
  reserved_ -= bytes;
  if (kept) kept_ -= bytes;
}

void MemoryBudget::count_kept(std::size_t bytes, bool kept) {
  const std::lock_guard lock(mutex_);
  kept ? kept_ += bytes : kept_ -= bytes;
}

}  // namespace cumulus::server

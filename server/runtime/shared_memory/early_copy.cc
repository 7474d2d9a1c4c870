#include "server/runtime/shared_memory/early_copy.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace cumulus::server {
namespace {

std::atomic<bool> one_is_under_way = false;

/// Of the device's budget, where that has plenty.
std::optional<Reservation> count(const Device& device, std::size_t bytes) {
  constexpr std::size_t kTimesAsMuch = 4;
  const MemoryBudget& budget = *device.budget();
  if (bytes > (budget.limit_bytes() - budget.reserved_bytes()) / kTimesAsMuch) return std::nullopt;
  absl::StatusOr<Reservation> counted = device.budget()->reserve(align_block(bytes));
  if (!counted.ok()) return std::nullopt;
  return *std::move(counted);
}

}  // namespace

std::shared_ptr<EarlyCopy> EarlyCopy::begin(Device& device, const std::shared_ptr<SharedRegion>& region,
                                            std::size_t bytes) {
  if (bytes == 0 || bytes > std::min(region->memory().size(), kMostBytes) || !device.healthy())
    return nullptr;
  if (region->kind() != SharedRegion::Kind::kArray || device.space() == Space::kHost) return nullptr;
  std::optional<Reservation> counted = count(device, bytes);
  if (!counted.has_value() || one_is_under_way.exchange(true)) return nullptr;
  const std::shared_ptr<EarlyCopy> copy(new EarlyCopy(device, region, bytes, *std::move(counted)));
  try {
    copy->copy();
  } catch (const std::exception&) {
    return nullptr;  // the CALL will find out why
  }
  return copy;
}

EarlyCopy::EarlyCopy(Device& device, std::shared_ptr<SharedRegion> region, std::size_t bytes,
                     Reservation counted)
    : device_(device), region_(std::move(region)), memory_bytes_(bytes), counted_(std::move(counted)) {}

EarlyCopy::~EarlyCopy() { one_is_under_way = false; }

void EarlyCopy::copy() {
  memory_ = device_.allocate(memory_bytes_);
  head_ = device_.allocate_head();
  device_.copy_in_and_read_head(
      region_->memory().first(memory_bytes_), memory_, {head_.data(), std::min(memory_bytes_, kHeadBytes)},
      [self = shared_from_this()](const absl::Status& status) { self->end(status); });
}

void EarlyCopy::uncount() { counted_.release(); }

void EarlyCopy::give_to(Taker taker) {
  std::unique_lock lock(mutex_);
  if (!status_.has_value()) {
    taker_.emplace(std::move(taker));
    return;
  }
  lock.unlock();
  hand_over(std::move(taker), *status_);
}

void EarlyCopy::end(const absl::Status& status) {
  std::unique_lock lock(mutex_);
  status_ = status;
  if (!taker_.has_value()) return;
  Taker taker = *std::move(taker_);
  taker_.reset();
  lock.unlock();
  hand_over(std::move(taker), status);
}

void EarlyCopy::hand_over(Taker taker, const absl::Status& status) {
  taker.memory = std::move(memory_);
  taker.head = std::move(head_);
  taker.done(status);
}

}  // namespace cumulus::server

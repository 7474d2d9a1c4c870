#include "server/runtime/transfer/transfer_shares.h"

#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

TransferShares::Share& TransferShares::Share::operator=(Share&& other) noexcept {
  if (this != &other) {
    end();
    shares_ = std::move(other.shares_);
    principal_ = std::move(other.principal_);
  }
  return *this;
}

void TransferShares::Share::end() {
  const std::shared_ptr<TransferShares> shares = std::move(shares_);  // which outlives the lock
  if (shares == nullptr) return;
  const std::lock_guard lock(shares->mutex_);
  const auto taken = shares->taken_.find(principal_);
  --taken->second.transfers;
  shares->forget_unused(taken);
}

TransferShares::Announcement& TransferShares::Announcement::operator=(Announcement&& other) noexcept {
  if (this != &other) {
    end();
    shares_ = std::move(other.shares_);
    principal_ = std::move(other.principal_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void TransferShares::Announcement::end() {
  const std::shared_ptr<TransferShares> shares = std::move(shares_);
  if (shares == nullptr || bytes_ == 0) return;
  const std::lock_guard lock(shares->mutex_);
  const auto taken = shares->taken_.find(principal_);
  taken->second.announced -= bytes_;
  shares->forget_unused(taken);
}

void TransferShares::forget_unused(TakenBy::iterator taken) {
  if (taken->second.transfers == 0 && taken->second.announced == 0) taken_.erase(taken);
}

absl::StatusOr<TransferShares::Announcement> TransferShares::announce(const Principal& principal,
                                                                      std::size_t bytes, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  Taken& taken = taken_[principal.name];
  // One alone may have any size: it ends by the rate that it has to keep.
  if (taken.announced > 0 && (bytes > limit || taken.announced > limit - bytes)) {
    constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
    return unavailable(
        "NO_MEMORY_NOW",
        concat("the array has ", bytes, " bytes, and this client's uploads that have begun have ",
               taken.announced, "; at most ", limit,
               " (max_upload_bytes) at a time are allowed: let some end first"),
        kRetryAfter);
  }
  taken.announced += bytes;
  return Announcement(shared_from_this(), principal.name, bytes);
}

absl::StatusOr<TransferShares::Share> TransferShares::begin(const Principal& principal) {
  const std::lock_guard lock(mutex_);
  Taken& taken = taken_[principal.name];
  if (taken.transfers >= principal.limits.max_transfers) {
    return exhausted(concat("principal:", principal.name, ":max_transfers"),
                     concat("this client has ", taken.transfers,
                            " uploads and downloads, its limit (max_transfers); let one end first"));
  }
  ++taken.transfers;
  return Share(shared_from_this(), principal.name);
}

}  // namespace cumulus::server

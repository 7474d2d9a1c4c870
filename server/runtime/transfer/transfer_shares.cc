#include "server/runtime/transfer/transfer_shares.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

void TransferShares::give_back(const OneTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(transfer.principal);
  --taken->second.transfers;
  forget_unused(taken);
}

void TransferShares::give_back(const AnnouncedBytes& announced) {
  if (announced.bytes == 0) return;  // for which nothing need be there any more
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(announced.principal);
  taken->second.announced -= announced.bytes;
  forget_unused(taken);
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
  return Announcement(shared_from_this(), {principal.name, bytes});
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
  return Share(shared_from_this(), {principal.name});
}

}  // namespace cumulus::server

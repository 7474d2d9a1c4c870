#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/runtime/principal.h"
#include "server/runtime/share.h"

namespace cumulus::server {

/// What the transfers that run take, by principal. Thread-safe.
class TransferShares : public std::enable_shared_from_this<TransferShares> {
 public:
  struct OneTransfer {
    std::string principal;
  };
  /// One transfer's part.
  using Share = server::Share<TransferShares, OneTransfer>;
  struct AnnouncedBytes {
    std::string principal;
    std::size_t bytes = 0;
  };
  /// The bytes that one upload has announced.
  using Announcement = server::Share<TransferShares, AnnouncedBytes>;

  static std::shared_ptr<TransferShares> create() {
    return std::shared_ptr<TransferShares>(new TransferShares);
  }
  /// RESOURCE_EXHAUSTED where the principal has as many as it may.
  absl::StatusOr<Share> begin(const Principal& principal);
  /// UNAVAILABLE where the principal's uploads have announced some, and more than `limit` bytes with these:
  /// when some have ended, it has room.
  absl::StatusOr<Announcement> announce(const Principal& principal, std::size_t bytes, std::size_t limit);

  void give_back(const OneTransfer& transfer);
  void give_back(const AnnouncedBytes& announced);

 private:
  struct Taken {
    std::size_t transfers = 0;
    std::size_t announced = 0;
  };
  using TakenBy = std::map<std::string, Taken>;
  TransferShares() = default;
  void forget_unused(TakenBy::iterator taken);

  std::mutex mutex_;
  TakenBy taken_;
};

}  // namespace cumulus::server

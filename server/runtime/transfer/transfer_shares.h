#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/runtime/principal.h"

namespace cumulus::server {

/// What the transfers that run take, by principal. Thread-safe.
class TransferShares : public std::enable_shared_from_this<TransferShares> {
 public:
  /// One transfer's part, until it ends. Move-only.
  class Share {
   public:
    Share() = default;
    Share(Share&&) = default;
    Share& operator=(Share&& other) noexcept;
    ~Share() { end(); }

   private:
    friend class TransferShares;
    Share(std::shared_ptr<TransferShares> shares, std::string principal)
        : shares_(std::move(shares)), principal_(std::move(principal)) {}
    void end();

    std::shared_ptr<TransferShares> shares_;
    std::string principal_;
  };

  /// The bytes that one upload has announced, until it ends. Move-only.
  class Announcement {
   public:
    Announcement() = default;
    Announcement(Announcement&&) = default;
    Announcement& operator=(Announcement&& other) noexcept;
    ~Announcement() { end(); }

   private:
    friend class TransferShares;
    Announcement(std::shared_ptr<TransferShares> shares, std::string principal, std::size_t bytes)
        : shares_(std::move(shares)), principal_(std::move(principal)), bytes_(bytes) {}
    void end();

    std::shared_ptr<TransferShares> shares_;
    std::string principal_;
    std::size_t bytes_ = 0;
  };

  static std::shared_ptr<TransferShares> create() {
    return std::shared_ptr<TransferShares>(new TransferShares);
  }
  /// RESOURCE_EXHAUSTED where the principal has as many as it may.
  absl::StatusOr<Share> begin(const Principal& principal);
  /// UNAVAILABLE where the principal's uploads have announced some, and more than `limit` bytes with these:
  /// when some have ended, it has room.
  absl::StatusOr<Announcement> announce(const Principal& principal, std::size_t bytes, std::size_t limit);

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

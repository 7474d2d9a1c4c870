#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "server/runtime/configuration.h"
#include "server/runtime/share.h"

namespace cumulus::server {

/// What the regions that clients share with the server take, by the user whose processes these clients are.
/// Thread-safe.
class RegionShares : public std::enable_shared_from_this<RegionShares> {
 public:
  struct Part {
    uid_t user = 0;
    std::size_t bytes = 0;         // of this machine's memory
    std::size_t device_bytes = 0;  // of GPUs' memory
  };
  /// One region's part.
  using Share = server::Share<RegionShares, Part>;

  explicit RegionShares(Configuration::SharedMemory limits) : limits_(std::move(limits)) {}

  /// RESOURCE_EXHAUSTED where there are as many regions as may be, in all or of this user.
  absl::StatusOr<Share> begin(uid_t user);
  /// That the region has so many bytes. RESOURCE_EXHAUSTED where there would be more than may be.
  absl::Status set_bytes(Share& share, std::size_t bytes);
  /// Likewise of a GPU's memory. FAILED_PRECONDITION where that is not shared.
  absl::Status set_device_bytes(Share& share, std::size_t bytes);

  void give_back(const Part& part);

  std::size_t regions() const;
  std::size_t bytes() const;
  std::size_t device_bytes() const;

 private:
  struct Taken {
    std::size_t regions = 0;
    std::size_t bytes = 0;
    std::size_t device_bytes = 0;
  };
  /// A limit on the bytes of one kind of memory, of all users and of each, and where they are counted.
  struct ByteLimit {
    std::string_view what;
    std::string_view name;
    std::size_t all;
    std::string_view own_name;
    std::size_t own;
    std::size_t Part::*part;
    std::size_t Taken::*taken;
  };
  absl::Status set_counted(Share& share, const ByteLimit& limit, std::size_t bytes);

  const Configuration::SharedMemory limits_;
  mutable std::mutex mutex_;
  Taken all_;
  std::map<uid_t, Taken> taken_;
};

}  // namespace cumulus::server

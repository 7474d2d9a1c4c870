#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "library/shared_memory/region.h"

namespace cumulus {

/// The arrays of this process that lie in regions of one connection's server. Thread-safe.
class SharedArrays {
 public:
  /// Holds the region, until remove().
  std::span<std::byte> add(std::unique_ptr<SharedRegion> region, std::size_t bytes);
  void remove(const std::byte* array);

  /// A transfer's hold on an array's region.
  using Hold = std::shared_ptr<const SharedRegion>;
  /// Of the array that `bytes` are, all of it, where the server can take it from there; else null. One that
  /// the server takes as it is becomes private here, and is not found a second time.
  Hold take(std::span<const std::byte> bytes);
  /// Of the array that `bytes` are, all of it, where the server can write to it; else null.
  Hold find(std::span<const std::byte> bytes);
  /// Tells the server that a transfer of the array that `bytes` are, all of it, is about to be asked for on
  /// its region's connection: an upload's copy begins then.
  enum class For { kUpload, kDownload };
  void knock(std::span<const std::byte> bytes, For transfer);
  /// Whether it was told of an upload, and no call was made of it yet; once. What lies there is since the
  /// KNOCK what it is now.
  bool take_knock(std::span<const std::byte> bytes);
  /// From now on transfers of the array go another way: its region's connection has a call that was given up.
  void retire(const std::byte* array);
  /// From now on the array is an ordinary one, of unspecified contents, that no server sees.
  void part_from_server(const std::byte* array);

 private:
  struct Entry {
    std::shared_ptr<SharedRegion> region;
    std::size_t bytes = 0;
    bool knocked = false;  // an upload that is under way has
    bool given = false;    // what the server has of it is no longer what lies here
  };

  /// Null where the server does not see what lies there.
  Entry* find_shared(std::span<const std::byte> bytes);

  std::mutex mutex_;
  std::map<const std::byte*, Entry> entries_;
};

/// A KNOCK of an upload, which is under way as long as this lives: nobody writes to its array meanwhile.
class UploadKnock {
 public:
  UploadKnock(std::shared_ptr<SharedArrays> arrays, std::span<const std::byte> bytes)
      : arrays_(std::move(arrays)), bytes_(bytes) {
    if (arrays_ != nullptr) arrays_->knock(bytes_, SharedArrays::For::kUpload);
  }
  ~UploadKnock() {
    if (arrays_ != nullptr) (void)arrays_->take_knock(bytes_);
  }
  UploadKnock(const UploadKnock&) = delete;
  UploadKnock& operator=(const UploadKnock&) = delete;

 private:
  const std::shared_ptr<SharedArrays> arrays_;
  const std::span<const std::byte> bytes_;
};

}  // namespace cumulus

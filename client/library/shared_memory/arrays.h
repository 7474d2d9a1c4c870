#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "library/shared_memory/region.h"

namespace cumulus {

/// The arrays of this process that lie in regions of one connection's server. Thread-safe.
class SharedArrays {
 public:
  /// Holds the region, until remove().
  std::span<std::byte> add(std::unique_ptr<SharedRegion> region, std::size_t bytes);
  void remove(const std::byte* array);

  /// An upload's hold on an array's region.
  using Hold = std::shared_ptr<const SharedRegion>;
  /// Of the array that `bytes` are, all of it, where the server can take it from there; else null. One that
  /// the server takes as it is becomes private here, and is not found a second time.
  Hold take(std::span<const std::byte> bytes);

 private:
  struct Entry {
    std::shared_ptr<SharedRegion> region;
    std::size_t bytes = 0;
    bool given = false;
  };

  std::mutex mutex_;
  std::map<const std::byte*, Entry> entries_;
};

}  // namespace cumulus

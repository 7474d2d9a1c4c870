#pragma once

#include <cstddef>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

struct CUstream_st;

namespace cumulus {

/// To CudaDevice::allocate in a stream's place: a block that is kept, which any stream may use at once, or no
/// memory where none is. Calls nothing of the driver's.
inline constexpr CUstream_st* kOnlyKept = nullptr;

/// Blocks of a pool that came back, for the next of exactly the same size: a driver's call for one takes 45
/// us where its code is out of the caches. They are idle, so that any stream may use one at once.
/// Thread-safe.
class KeptBlocks {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // beside what is in use
  static constexpr std::size_t kMaxBlocks = 64;

  KeptBlocks() { blocks_.reserve(kMaxBlocks + 1); }  // as blocks come back in destructors

  /// Null where none is kept.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto kept = blocks_.rbegin(); kept != blocks_.rend(); ++kept) {
      if (kept->first != bytes) continue;
      void* const block = kept->second;
      blocks_.erase(std::next(kept).base());
      bytes_ -= bytes;
      return block;
    }
    return nullptr;
  }

  /// What there is no room for then, the oldest first, goes to `free`.
  template <class Free>
  void keep(std::size_t bytes, void* block, const Free& free) {
    const std::lock_guard lock(mutex_);
    blocks_.emplace_back(bytes, block);
    bytes_ += bytes;
    while (bytes_ > kMaxBytes || blocks_.size() > kMaxBlocks) free_oldest(free);
  }

  /// Whether there were any, which have all gone to `free`.
  template <class Free>
  bool free_all(const Free& free) {
    const std::lock_guard lock(mutex_);
    const bool any = !blocks_.empty();
    while (!blocks_.empty()) free_oldest(free);
    return any;
  }

 private:
  template <class Free>
  void free_oldest(const Free& free) {
    const auto [bytes, block] = blocks_.front();
    blocks_.erase(blocks_.begin());
    bytes_ -= bytes;
    free(block);
  }

  std::mutex mutex_;
  std::vector<std::pair<std::size_t, void*>> blocks_;  // the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace cumulus

#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "library/shared_memory/ring_call.h"

namespace cumulus {

/// The slots of a ring that an upload's threads fill. Each thread has a few of its own, and takes again the
/// one that came back last: its core's cache holds it still, where it is quicker to write to.
class FillingSlots {
 public:
  FillingSlots(RingCall& call, std::size_t threads);

  /// A slot that is `thread`'s to fill; empty once the call has ended.
  std::optional<std::uint32_t> take(std::size_t thread);
  /// When no thread takes any more: waits until so many slots have come back in all, or the call has ended,
  /// so that none of its messages are left.
  void wait_for(std::size_t count);

 private:
  static constexpr std::size_t kMaxOfAThread = 4;

  /// Hands a slot that has come back to its thread. Ends the upload where there is none.
  void note(const std::optional<SharedMemoryMessage>& message);
  /// Those that have come back meanwhile.
  void note_all_that_came();

  RingCall& call_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<std::vector<std::uint32_t>> free_;  // by thread; the last is what came back last
  bool somebody_waits_ = false;                   // for a message
  bool over_ = false;
  std::size_t came_back_ = 0;
};

}  // namespace cumulus

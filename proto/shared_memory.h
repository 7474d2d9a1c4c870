#pragma once

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cumulus {

/// A message on the socket of shared memory; cumulus/v1/shared_memory.proto says what each means.
struct SharedMemoryMessage {
  enum Kind : std::uint32_t {
    kRing = 1,
    kArray = 2,
    kRegion = 3,
    kRefused = 4,
    kBegin = 5,
    kFilled = 6,
    kFree = 7,
    kDevice = 8,
    kCall = 9,
    kAnswer = 10,
    kCancel = 11,
    kKnock = 12,
  };
  std::uint32_t kind = 0;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(SharedMemoryMessage) == 24);

/// What may follow a message: a region's id, or why there is none.
inline constexpr std::size_t kMaxSharedMemoryText = 512;
/// What may follow a CALL or an ANSWER.
inline constexpr std::size_t kMaxSharedMemoryCall = 4096;

/// Bits of a REGION's offset: an upload takes the region itself; CALL may come. The second is also that of
/// the client's first message, of one that sends CALL.
inline constexpr std::uint64_t kRegionIsTaken = 1;
inline constexpr std::uint64_t kRegionTakesCalls = 2;
/// The third of a REGION's: whose it is, is known.
inline constexpr std::uint64_t kRegionIsKnown = 4;
/// The fourth of a REGION's: kReadGiven may come, and CALL may name a trace.
inline constexpr std::uint64_t kRegionTakesGifts = 8;
/// The fifth of a REGION's: KNOCK may come, and pieces of an upload may be parts of a slot's.
inline constexpr std::uint64_t kRegionTakesKnocks = 16;
/// The sixth of a REGION's: KNOCK may say how many bytes an upload brings, and its CALL is kWriteKnocked.
inline constexpr std::uint64_t kRegionTakesEarlyCopies = 32;

/// Of a CALL, in its slot. kReadGiven: as kRead, and what the client would give after BEGIN is the server's
/// at once: BEGIN does not come. kWriteKnocked: as kWrite, and the array is since the KNOCK right before what
/// it is now.
enum class SharedMemoryCall : std::uint32_t { kWrite = 0, kRead = 1, kReadGiven = 2, kWriteKnocked = 3 };
/// Of an ANSWER, in its offset: the transfer ended before it began, with the region as it was.
inline constexpr std::uint64_t kAnswerOfNothing = 1;

/// As Capabilities.max_chunk_bytes, so that pieces are those of streams.
inline constexpr std::size_t kSharedSlotBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kSharedSlots = 16;
/// What an upload's pieces begin at multiples of. So few bytes stay in the cache of the core that copies
/// them.
inline constexpr std::size_t kSharedPieceBytes = kSharedSlotBytes / 4;

/// Which pages of a ring's slots this process has mapped to write to. A slot is one thread's at a time.
class MappedSlots {
 public:
  /// Before the first `bytes` of a slot are written: maps their pages at once, where that has not been done.
  /// A fault for each page takes half as long again.
  void prepare(std::uint32_t index, std::span<std::byte> bytes) {
    std::size_t& mapped = mapped_[index];
    if (bytes.size() <= mapped) return;
    mapped = bytes.size();
    // A kernel that does not know this leaves it to the faults.
    (void)::madvise(bytes.data(), bytes.size(), MADV_POPULATE_WRITE);
  }

 private:
  std::array<std::size_t, kSharedSlots> mapped_{};  // bytes of each
};

}  // namespace cumulus

#pragma once

#include <cstddef>
#include <cstdint>
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
  };
  std::uint32_t kind = 0;
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(SharedMemoryMessage) == 24);

/// What may follow a message: a region's id, or why there is none.
inline constexpr std::size_t kMaxSharedMemoryText = 512;

/// As Capabilities.max_chunk_bytes, so that pieces are those of streams.
inline constexpr std::size_t kSharedSlotBytes = std::size_t{1} << 20;
inline constexpr std::uint32_t kSharedSlots = 16;

}  // namespace cumulus

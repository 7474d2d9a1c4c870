#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cumulus {

/// As memcpy, to memory that is far larger than the caches, or that another reads next: its old contents are
/// not read first, and the caches keep what they have. `to` has the size of `from`.
void copy_streaming(std::span<std::byte> to, std::span<const std::byte> from);

/// How arrays are copied to the program's memory, as what copies have taken tells: it depends on the machine,
/// and on where the data was last, whether memcpy or copy_streaming is quicker. Thread-safe.
class CopyChoice {
 public:
  enum class Way { kCached, kStreaming };

  /// The quicker one, and now and then the other.
  Way choose();
  /// What a copy of a slot's size took.
  void note(Way way, std::chrono::nanoseconds taken);

  /// Copies by the way that it chooses.
  void copy(std::span<std::byte> to, std::span<const std::byte> from);

 private:
  static constexpr std::uint32_t kTurnsUntilTheOther = 16;

  std::atomic<std::uint32_t> turn_ = 0;
  std::array<std::atomic<double>, 2> nanoseconds_{};  // by way, of recent copies; 0: not known
};

}  // namespace cumulus

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cumulus::testing {

/// Called with every array that a test brings back from a backend; null in programs that do not compare
/// hashes.
inline void (*result_observer)(std::span<const std::byte>) = nullptr;

/// What a test has brought back: a hash over all arrays in their order, and after each array a byte of it, as
/// two digits, which say which array is the first that differs.
struct ResultHashes {
  std::uint64_t hash = 0x243F6A8885A308D3U;
  std::string marks;

  void add(std::span<const std::byte> array);
  std::size_t arrays() const { return marks.size() / 2; }
  bool operator==(const ResultHashes&) const = default;
};

}  // namespace cumulus::testing

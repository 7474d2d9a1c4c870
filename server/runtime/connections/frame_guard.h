#pragma once

#include <absl/time/time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cumulus::server {

/// Reads along what a client sends over one HTTP/2 connection, and notices what gRPC 1.51 takes any amount
/// of: headers that never end, in CONTINUATION frames, and calls that are begun and reset without end. What
/// does not begin as HTTP/2 does, such as the records of TLS, it does not look at.
class FrameGuard {
 public:
  struct Limits {
    std::size_t header_bytes = 0;  // of one call's headers, as they come
    std::size_t resets = 0;        // of calls, a second; twice as many at once
  };
  explicit FrameGuard(const Limits& limits)
      : limits_(limits), resets_left_(2.0 * static_cast<double>(limits.resets)) {}

  /// The bytes that come next. False where a bound is passed: nothing is to be read from this client any
  /// more.
  bool accept(std::span<const std::byte> bytes, absl::Time now);
  /// Which, in words.
  const std::string& problem() const { return problem_; }

 private:
  static constexpr std::size_t kPrefaceBytes = 24;
  static constexpr std::size_t kFrameHeaderBytes = 9;

  bool begin_frame(absl::Time now);
  bool add_header_bytes(std::size_t bytes);
  bool count_reset(absl::Time now);

  const Limits limits_;
  std::size_t to_skip_ = kPrefaceBytes;  // of the preface, or of a frame's contents
  bool begun_ = false;
  bool looks_ = true;
  std::array<std::uint8_t, kFrameHeaderBytes> header_{};
  std::size_t header_filled_ = 0;
  std::size_t header_bytes_ = 0;  // of the block that has not ended
  double resets_left_;
  absl::Time counted_ = absl::InfinitePast();
  std::string problem_;
};

}  // namespace cumulus::server

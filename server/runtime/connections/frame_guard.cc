#include "server/runtime/connections/frame_guard.h"

#include <algorithm>

#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

// RFC 9113, section 6.
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kResetStream = 3;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 4;

constexpr std::byte kPrefaceBegins{'P'};  // "PRI * HTTP/2.0"; gRPC closes what has it not

}  // namespace

bool FrameGuard::accept(std::span<const std::byte> bytes, absl::Time now) {
  if (!problem_.empty()) return false;
  if (!begun_ && !bytes.empty()) {
    begun_ = true;
    looks_ = bytes.front() == kPrefaceBegins;
  }
  if (!looks_) return true;
  while (!bytes.empty()) {
    if (to_skip_ > 0) {
      const std::size_t skipped = std::min(to_skip_, bytes.size());
      to_skip_ -= skipped;
      bytes = bytes.subspan(skipped);
      continue;
    }
    header_[header_filled_++] = std::to_integer<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    if (header_filled_ < kFrameHeaderBytes) continue;
    header_filled_ = 0;
    if (!begin_frame(now)) return false;
  }
  return true;
}

bool FrameGuard::begin_frame(absl::Time now) {
  const std::size_t length = std::size_t{header_[0]} << 16 | std::size_t{header_[1]} << 8 | header_[2];
  const std::uint8_t type = header_[3];
  to_skip_ = length;
  if (type == kResetStream) return count_reset(now);
  if (type != kHeaders && type != kContinuation) return true;
  if (type == kHeaders) header_bytes_ = 0;
  if (!add_header_bytes(kFrameHeaderBytes + length)) return false;
  if ((header_[4] & kEndHeaders) != 0) header_bytes_ = 0;
  return true;
}

bool FrameGuard::add_header_bytes(std::size_t bytes) {
  header_bytes_ += bytes;
  if (header_bytes_ <= limits_.header_bytes) return true;
  problem_ = concat("a call's headers have more than ", limits_.header_bytes, " bytes (max_header_bytes)");
  return false;
}

bool FrameGuard::count_reset(absl::Time now) {
  const auto a_second = static_cast<double>(limits_.resets);
  if (now > counted_ && counted_ != absl::InfinitePast())
    resets_left_ = std::min(2 * a_second, resets_left_ + a_second * absl::ToDoubleSeconds(now - counted_));
  counted_ = now;
  resets_left_ -= 1;
  if (resets_left_ >= 0) return true;
  problem_ = concat("more than ", limits_.resets, " calls a second are reset (max_resets)");
  return false;
}

}  // namespace cumulus::server

#include "library/shared_memory/streaming_copy.h"

#include <cstdint>
#include <cstring>

#include "proto/shared_memory.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cumulus {

#if defined(__SSE2__)

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kAhead = 16 * kLine;

/// A cache line, whose parts the processor joins to one write.
void copy_line(std::byte* to, const std::byte* from) {
  const auto* source = reinterpret_cast<const __m128i*>(from);
  auto* target = reinterpret_cast<__m128i*>(to);
  const __m128i first = _mm_loadu_si128(source);
  const __m128i second = _mm_loadu_si128(source + 1);
  const __m128i third = _mm_loadu_si128(source + 2);
  const __m128i fourth = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, first);
  _mm_stream_si128(target + 1, second);
  _mm_stream_si128(target + 2, third);
  _mm_stream_si128(target + 3, fourth);
}

}  // namespace

void copy_streaming(std::span<std::byte> to, std::span<const std::byte> from) {
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(to.data()) % kLine;
  if (from.size() < before + kLine) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  std::memcpy(to.data(), from.data(), before);
  std::size_t done = before;
  for (; done + kLine <= from.size(); done += kLine) {
    _mm_prefetch(reinterpret_cast<const char*>(from.data() + done) + kAhead, _MM_HINT_NTA);
    copy_line(to.data() + done, from.data() + done);
  }
  _mm_sfence();  // before anything that tells another of it
  std::memcpy(to.data() + done, from.data() + done, from.size() - done);
}

#else

void copy_streaming(std::span<std::byte> to, std::span<const std::byte> from) {
  std::memcpy(to.data(), from.data(), from.size());
}

#endif

CopyChoice::Way CopyChoice::choose() {
  const double cached = nanoseconds_[0];
  const double streaming = nanoseconds_[1];
  if (cached == 0 || streaming == 0) return cached == 0 ? Way::kCached : Way::kStreaming;
  const bool other = ++turn_ % kTurnsUntilTheOther == 0;
  return (streaming < cached) != other ? Way::kStreaming : Way::kCached;
}

void CopyChoice::note(Way way, std::chrono::nanoseconds taken) {
  constexpr double kNewest = 0.25;
  std::atomic<double>& known = nanoseconds_[static_cast<std::size_t>(way)];
  const double before = known;
  const auto now = static_cast<double>(taken.count());
  known = before == 0 ? now : before + kNewest * (now - before);  // one that is lost does not matter
}

void CopyChoice::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  const Way way = choose();
  const auto start = std::chrono::steady_clock::now();
  if (way == Way::kStreaming) {
    copy_streaming(to, from);
  } else {
    std::memcpy(to.data(), from.data(), from.size());
  }
  if (from.size() == kSharedSlotBytes) note(way, std::chrono::steady_clock::now() - start);
}

}  // namespace cumulus

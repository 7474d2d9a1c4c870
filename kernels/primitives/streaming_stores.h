#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstring>

// Stores past the caches, for results that do not stay there: a line that is written as a whole need not be
// read first.

namespace cumulus {

/// Copies 16 bytes to an address that is a multiple of 16. Other threads may miss them until
/// finish_streaming.
inline void stream_16_bytes(const void* from, void* to) {
#if defined(__SSE2__)
  _mm_stream_si128(static_cast<__m128i*>(to), _mm_loadu_si128(static_cast<const __m128i*>(from)));
#else
  std::memcpy(to, from, 16);
#endif
}

/// The same for lines of 64 bytes; both addresses are multiples of that.
inline void stream_lines(const void* from, void* to, std::size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (std::size_t line = 0; line < bytes; line += 64) {
    for (std::size_t i = line; i < line + 64; i += 16) stream_16_bytes(source + i, target + i);
  }
}

/// To be called by each thread that has streamed, before others read.
inline void finish_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace cumulus

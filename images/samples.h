#pragma once

#include <cstddef>
#include <vector>

#include "images/image_library.h"

// What both image modules do with samples.

namespace cumulus::images {

std::size_t bytes_of(Samples samples);
bool is_floating(Samples samples);

/// Samples of another kind: integers count as shares of their largest where the other side is no integer of
/// the same meaning, so that 255 of 8 bits is 65535 of 16 and 1.0; floats beyond 0 to 1 are cut off where
/// integers are made. Integers of 32 and 64 bits are numbers.
void convert(Samples from, const void* source, Samples to, void* target, std::size_t count);

/// Of pixels of 8-bit, 16-bit or floating-point samples: all channels but `alpha` are multiplied by it.
void multiply_by_alpha(Samples samples, void* pixels, std::size_t count, int channels, int alpha);

/// The reverse, of floats: where alpha is 0, colours stay as they are.
void divide_by_alpha(float* pixels, std::size_t count, int channels, int alpha);

/// The pixels of `picture` as it asks for them to be stored, all channels as `stored`, not multiplied by
/// alpha where `straight_alpha` is a channel and they are. The bytes lie in `buffer`, or where they lay
/// before.
const void* stored_pixels(const Picture& picture, Samples stored, int straight_alpha,
                          std::vector<std::byte>& buffer);

/// As many threads as there are processors, or one after keep_to_one_thread().
int threads();
void keep_to_one_thread();

/// body(begin, end) over parts of 0 to `count`, on all threads.
template <class Body>
void in_parallel(std::size_t count, const Body& body);

}  // namespace cumulus::images

#include <algorithm>
#include <thread>

namespace cumulus::images {

template <class Body>
void in_parallel(std::size_t count, const Body& body) {
  constexpr std::size_t kLeast = std::size_t{1} << 16;  // elements that are worth a thread
  const std::size_t parts = std::clamp<std::size_t>(count / kLeast, 1, static_cast<std::size_t>(threads()));
  std::vector<std::thread> others;
  for (std::size_t part = 1; part < parts; ++part)
    others.emplace_back([&, part] { body(count * part / parts, count * (part + 1) / parts); });
  body(0, count / parts);
  for (std::thread& other : others) other.join();
}

}  // namespace cumulus::images

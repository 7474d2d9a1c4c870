#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/run_length/element.h"

// Where runs begin, on the host: a bit for each element, 64 of them in a word, bit i for element i.

namespace cumulus::run_length {

inline constexpr std::int64_t kWordElements = 64;

template <class T>
bool differ(const T& a, const T& b) {
  if constexpr (kIsWord<T>) {
    return a != b;
  } else {
    bool differs = false;  // without branches: heads may be anywhere
    for (int i = 0; i < T::kUnits; ++i) differs |= a.units[i] != b.units[i];
    return differs;
  }
}

/// Whether an element differs from the one before it, put so that compilers find vector instructions for it.
/// Of elements of 3 and 6 bytes some of the one before that are read, too.
template <class T>
bool differs_from_last(const T* element) {
  if constexpr (kIsWord<T> && sizeof(T) == 8) {  // x86-64's first vector instructions compare 32 bits at most
    const std::uint64_t bits = element[0] ^ element[-1];
    return static_cast<std::uint32_t>(bits | bits >> 32) != 0;
  } else if constexpr (sizeof(T) == 3 || sizeof(T) == 6) {  // in the upper bytes of a word
    using Word = std::conditional_t<sizeof(T) == 3, std::uint32_t, std::uint64_t>;
    const auto word_that_ends = [](const T* end) {
      Word word;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(end) - sizeof(Word), sizeof(Word));
      return word;
    };
    const Word bits = word_that_ends(element + 1) ^ word_that_ends(element);
    return bits >> 8 * (sizeof(Word) - sizeof(T)) != 0;
  } else {
    return differ(element[0], element[-1]);
  }
}

/// Bits of bytes that are 0 or 1.
inline std::uint64_t gather_bits(const std::array<std::uint8_t, kWordElements>& flags) {
  // Byte i of eight, times 2^(56 - 7 i), is bit 56 + i; no two products meet in one bit.
  constexpr std::uint64_t kLineUp = 0x0102040810204080;
  std::uint64_t bits = 0;
  for (std::size_t first = 0; first < flags.size(); first += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, flags.data() + first, 8);
    bits |= eight * kLineUp >> 56 << first;
  }
  return bits;
}

/// Which of 64 elements differ from the one before them. Reads elements[-1] and perhaps elements[-2], too.
template <class T>
std::uint64_t differences(const T* elements) {
  std::array<std::uint8_t, kWordElements> flags;
  for (std::int64_t i = 0; i < kWordElements; ++i)
    flags[static_cast<std::size_t>(i)] = differs_from_last(elements + i) ? 1 : 0;
  return gather_bits(flags);
}

/// The same for elements [first, end) of the array, at most 64 and not all of a word: bit i for element
/// `base` + i.
template <class T>
std::uint64_t differences(const T* array, std::int64_t base, std::int64_t first, std::int64_t end) {
  std::uint64_t bits = 0;
  for (std::int64_t i = first; i < end; ++i)
    bits |= std::uint64_t{differ(array[i], array[i - 1])} << (i - base);
  return bits;
}

/// As std::popcount, which without instructions beyond x86-64's first ones is a call and a table.
constexpr std::int64_t count_bits(std::uint64_t word) {
  word -= word >> 1 & 0x5555555555555555;
  word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<std::int64_t>(word * 0x0101010101010101 >> 56);
}

}  // namespace cumulus::run_length

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/table.h"
#include "kernels/bracket_match/tuning.h"

// The elements of a tile in shared memory, and what they are.

namespace cumulus::bracket_match {

/// What the kernels know of a kind of element. A role is added up in two halves of a word: opens below,
/// closes above.
inline constexpr std::uint32_t kRoleOpen = 1;
inline constexpr std::uint32_t kRoleClose = 1u << 16;

template <class Symbol>
struct Rules;

template <>
struct Rules<std::uint8_t> {
  std::uint8_t role[256];  // a BracketTable::Role
  std::uint8_t mate[256];

  struct Mates {
    std::uint8_t mate[256];

    __device__ bool fit(std::uint8_t open, std::uint8_t close) const { return mate[open] == close; }
    __device__ std::int32_t close_of(std::uint8_t open) const { return mate[open]; }
  };
  struct Shared : Mates {
    std::uint32_t role[256];

    __device__ std::uint32_t role_of(std::uint8_t symbol) const { return role[symbol]; }
  };

  __device__ bool fit(std::uint8_t open, std::uint8_t close) const { return mate[open] == close; }

  __device__ void prepare_mates(Mates& mates) const {
    for (unsigned int byte = threadIdx.x; byte < 256; byte += blockDim.x) mates.mate[byte] = mate[byte];
  }

  __device__ void prepare(Shared& shared) const {
    for (unsigned int byte = threadIdx.x; byte < 256; byte += blockDim.x) {
      const auto what = static_cast<BracketTable::Role>(role[byte]);
      shared.role[byte] = what == BracketTable::Role::kOpen    ? kRoleOpen
                          : what == BracketTable::Role::kClose ? kRoleClose
                                                               : 0;
    }
    prepare_mates(shared);
  }
};

template <>
struct Rules<std::int32_t> {
  struct Mates {
    __device__ bool fit(std::int32_t open, std::int32_t close) const { return open == close_of(close); }
    __device__ std::int32_t close_of(std::int32_t open) const {
      return static_cast<std::int32_t>(0u - static_cast<std::uint32_t>(open));
    }
  };
  struct Shared : Mates {
    __device__ std::uint32_t role_of(std::int32_t symbol) const {
      return symbol > 0 ? kRoleOpen : symbol < 0 ? kRoleClose : 0;
    }
  };

  __device__ static bool fit(std::int32_t open, std::int32_t close) { return Mates().fit(open, close); }
  __device__ void prepare_mates(Mates&) const {}
  __device__ void prepare(Shared&) const {}
};

/// The lowest `count` bits, which may be none or more than there are.
__device__ inline std::uint32_t lowest_bits(std::int64_t count) {
  return count >= 32 ? ~0u : count <= 0 ? 0u : (1u << count) - 1;
}

/// What one thread's elements are, a bit each.
struct RoleBits {
  std::uint32_t opens;
  std::uint32_t closes;
  std::uint32_t begins;  // a document begins here
};

/// A tile's elements, word by word; a thread's are in a column of its own, and columns are laid out so that
/// both the coalesced store and the reading of columns touch every bank once.
template <class Symbol, int kThreads = kTileThreads>
struct TileSymbols {
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(Symbol));
  static constexpr int kWords = kThreadItems / kPerWord;  // of one thread
  static constexpr int kStride = kThreads + 32 / kWords;
  std::uint32_t words[kWords * kStride];

  /// Elements at and beyond `count` of the text hold anything.
  __device__ void load(const Symbol* text, std::int64_t first, std::int64_t count) {
    const bool whole =
        first + kThreads * kThreadItems <= count && reinterpret_cast<std::uintptr_t>(text) % 4 == 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int index = i * kThreads + static_cast<int>(threadIdx.x);
      const std::int64_t element = first + index * kPerWord;
      std::uint32_t word = 0;
      if (whole) {
        word = __ldg(reinterpret_cast<const std::uint32_t*>(text + element));
      } else {
        for (int j = 0; j < kPerWord; ++j) {
          if (element + j < count) {
            word |= static_cast<std::uint32_t>(text[element + j])
                    << (j * 8 * static_cast<int>(sizeof(Symbol)));
          }
        }
      }
      words[index % kWords * kStride + index / kWords] = word;
    }
  }

  __device__ Symbol at(int thread, int item) const {
    const auto* symbols = reinterpret_cast<const Symbol*>(words);
    return symbols[(item / kPerWord * kStride + thread) * kPerWord + item % kPerWord];
  }

  /// Of this thread's elements, of which the first `count` are in the text.
  template <class Shared>
  __device__ RoleBits roles(const Shared& rules, std::int64_t count, std::uint32_t begins) const {
    std::uint32_t halves[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      halves[half] = 0;
#pragma unroll
      for (int i = 15; i >= 0; --i) {
        halves[half] = 2 * halves[half] + rules.role_of(at(static_cast<int>(threadIdx.x), half * 16 + i));
      }
    }
    const std::uint32_t valid = lowest_bits(count);
    return {__byte_perm(halves[0], halves[1], 0x5410) & valid,
            __byte_perm(halves[0], halves[1], 0x7632) & valid, begins};
  }
};

}  // namespace cumulus::bracket_match

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/bracket_match/match/tile_symbols.cuh"
#include "kernels/bracket_match/table.h"
#include "kernels/bracket_match/tuning.h"
#include "kernels/primitives/warp.cuh"

// What the elements of a thread are, a bit each.

namespace cumulus::bracket_match {

/// Of an element: whether it opens, whether it closes, and its kind modulo 4, from the lowest bit on.
using ElementCode = std::uint32_t;
inline constexpr ElementCode kOpenCode = 1;
inline constexpr ElementCode kCloseCode = 2;
inline constexpr int kKindShift = 2;
inline constexpr ElementCode kCodeKinds = 4;

/// By value to the kernel.
template <class Symbol>
struct Codes;

template <>
struct Codes<std::uint8_t> {
  struct Pair {
    std::uint8_t open;
    std::uint8_t close;
  };
  std::array<Pair, 128> pairs;
  unsigned int kinds;  // pairs that there are
  bool exact;          // different kinds have different codes

  static Codes of(const BracketTable& table) {
    Codes codes{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (table.role[byte] != BracketTable::Role::kOpen) continue;
      codes.pairs[codes.kinds++] = {static_cast<std::uint8_t>(byte), table.mate[byte]};
    }
    codes.exact = codes.kinds <= kCodeKinds;
    return codes;
  }
};

template <>
struct Codes<std::int32_t> {
  static constexpr bool exact = false;
};

/// A bit of the code to each byte of a word, so that the codes of eight elements can be added up.
__device__ inline std::uint32_t spread(ElementCode code) { return code * 0x00204081u & 0x01010101u; }

/// Kinds modulo 4 of a thread's elements.
struct KindBits {
  std::uint32_t low;
  std::uint32_t high;

  __device__ std::uint32_t of(int item) const { return (low >> item & 1) | (high >> item & 1) << 1; }
};

/// The lowest bit says whether the kinds of two elements differ; the others say nothing.
__device__ inline std::uint32_t difference(KindBits a, int item_a, KindBits b, int item_b) {
  return (a.low >> item_a ^ b.low >> item_b) | (a.high >> item_a ^ b.high >> item_b);
}

struct ItemBits {
  std::uint32_t opens;
  std::uint32_t closes;
  KindBits kinds;

  /// From the sums of the spread codes of eight elements each, the first of them in the lowest bits.
  __device__ static ItemBits of(const std::uint32_t (&sums)[4]) {
    const std::uint32_t roles_low = __byte_perm(sums[0], sums[1], 0x5140);
    const std::uint32_t roles_high = __byte_perm(sums[2], sums[3], 0x5140);
    const std::uint32_t kinds_low = __byte_perm(sums[0], sums[1], 0x7362);
    const std::uint32_t kinds_high = __byte_perm(sums[2], sums[3], 0x7362);
    return {__byte_perm(roles_low, roles_high, 0x5410),
            __byte_perm(roles_low, roles_high, 0x7632),
            {__byte_perm(kinds_low, kinds_high, 0x5410), __byte_perm(kinds_low, kinds_high, 0x7632)}};
  }
};

/// The elements of each thread of a tile.
template <class Symbol>
class TileItems;

/// Bytes are in registers, their codes in shared memory.
template <>
class TileItems<std::uint8_t> {
 public:
  struct alignas(16) Memory {
    std::uint32_t codes[256];  // spread
  };

  /// The block has to synchronize before bits().
  __device__ TileItems(const Codes<std::uint8_t>& codes, Memory& memory, const std::uint8_t* text,
                       std::int64_t first, int valid)
      : codes_(memory.codes) {
    const std::uint8_t* from = text + first + static_cast<int>(threadIdx.x) * kThreadItems;
    if (valid == kThreadItems && reinterpret_cast<std::uintptr_t>(text) % 16 == 0) {
#pragma unroll
      for (int i = 0; i < kThreadItems / 16; ++i) {
        const uint4 four = __ldg(reinterpret_cast<const uint4*>(from) + i);
        words_[4 * i] = four.x;
        words_[4 * i + 1] = four.y;
        words_[4 * i + 2] = four.z;
        words_[4 * i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kThreadItems / 4; ++i) {
        words_[i] = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (4 * i + j < valid) words_[i] |= static_cast<std::uint32_t>(from[4 * i + j]) << 8 * j;
        }
      }
    }
    if (threadIdx.x < 32) write_codes(codes, memory);
  }

  __device__ ItemBits bits() const {
    std::uint32_t sums[4] = {};
#pragma unroll
    for (int i = kThreadItems / 4 - 1; i >= 0; --i) {
      const std::uint32_t places = place_of(words_[i]);
#pragma unroll
      for (int j = 3; j >= 0; --j) sums[i / 2] = 2 * sums[i / 2] + codes_[__byte_perm(places, 0, 0x4440 + j)];
    }
    return ItemBits::of(sums);
  }

 private:
  /// By one warp. Few of its lanes read of the parameters, which each waits for by itself.
  __device__ static void write_codes(const Codes<std::uint8_t>& codes, Memory& memory) {
    auto* fours = reinterpret_cast<uint4*>(memory.codes);
    fours[threadIdx.x] = {0, 0, 0, 0};
    fours[threadIdx.x + 32] = {0, 0, 0, 0};
    __syncwarp();
    const auto* pairs = reinterpret_cast<const Codes<std::uint8_t>::Pair*>(&codes.pairs);
    for (unsigned int kind = threadIdx.x; kind < codes.kinds; kind += 32) {
      const Codes<std::uint8_t>::Pair pair = pairs[kind];
      const ElementCode code = kind % kCodeKinds << kKindShift;
      memory.codes[place_of(pair.open)] = spread(kOpenCode | code);
      memory.codes[place_of(pair.close)] = spread(kCloseCode | code);
    }
  }

  /// Where the codes of four bytes are: those of (, [ and { are in different banks.
  __device__ static std::uint32_t place_of(std::uint32_t bytes) { return bytes ^ (bytes >> 5 & 0x07070707u); }

  std::uint32_t words_[kThreadItems / 4];
  const std::uint32_t* codes_;
};

/// Tokens are in shared memory, the thread's in a row.
template <>
class TileItems<std::int32_t> {
 public:
  struct Memory {
    static constexpr int kStride = kThreadItems + 1;  // so that rows begin in different banks
    std::int32_t tokens[kTileThreads * kStride];

    __device__ std::int32_t* row(int thread) { return tokens + thread * kStride; }
  };

  __device__ TileItems(const Codes<std::int32_t>& /*codes*/, Memory& memory, const std::int32_t* text,
                       std::int64_t first, int valid)
      : row_(memory.row(static_cast<int>(threadIdx.x))) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int owner = 0; owner < 32; ++owner) {
      const int count = __shfl_sync(kFullWarp, valid, owner);
      const int thread = warp * 32 + owner;
      if (lane < count) memory.row(thread)[lane] = text[first + thread * kThreadItems + lane];
    }
    __syncwarp();
  }

  /// Of elements beyond the text too, which are anything.
  __device__ ItemBits bits() const {
    std::uint32_t sums[4] = {};
#pragma unroll
    for (int i = kThreadItems - 1; i >= 0; --i) sums[i / 8] = 2 * sums[i / 8] + spread(code_of(row_[i]));
    return ItemBits::of(sums);
  }

 private:
  __device__ static ElementCode code_of(std::int32_t token) {
    const auto kind =
        static_cast<ElementCode>(token < 0 ? Rules<std::int32_t>::Mates().close_of(token) : token);
    const ElementCode role = token > 0 ? kOpenCode : token < 0 ? kCloseCode : 0;
    return role | kind % kCodeKinds << kKindShift;
  }

  const std::int32_t* row_;
};

}  // namespace cumulus::bracket_match

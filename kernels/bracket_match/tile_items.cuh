#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/bracket_match/bracket_match_tuning.h"
#include "kernels/bracket_match/bracket_table.h"
#include "kernels/bracket_match/thread_stacks.cuh"
#include "kernels/bracket_match/tile_symbols.cuh"

// What the elements of a thread are, one after the other, as codes: of an open its kind, of a close its kind
// and kKinds, of anything else a code that is neither.

namespace cumulus::bracket_match {

inline constexpr unsigned int kKinds = 128;

/// By value to the kernel.
template <class Symbol>
struct Codes;

template <>
struct Codes<std::uint8_t> {
  std::uint32_t words[64];  // the code of each byte, four to a word
  unsigned int open_codes;  // kinds are below it; of a neutral byte the code is kKinds - 1

  static Codes of(const BracketTable& table) {
    using Role = BracketTable::Role;
    Codes codes{};
    std::array<std::uint8_t, 256> code_of;
    code_of.fill(kKinds - 1);  // with kKinds pairs no byte is neutral
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (table.role[byte] != Role::kOpen) continue;
      code_of[byte] = static_cast<std::uint8_t>(codes.open_codes);
      code_of[table.mate[byte]] = static_cast<std::uint8_t>(codes.open_codes + kKinds);
      ++codes.open_codes;
    }
    std::memcpy(codes.words, code_of.data(), sizeof(codes.words));
    return codes;
  }
};

template <>
struct Codes<std::int32_t> {};

/// The elements of each thread of a tile.
template <class Symbol>
class TileItems;

/// Bytes are in registers, their codes in shared memory.
template <>
class TileItems<std::uint8_t> {
 public:
  using Memory = std::array<std::uint32_t, 64>;
  static constexpr bool kCodesAreExact = true;

  /// The block has to synchronize before the first code().
  __device__ TileItems(const Codes<std::uint8_t>& codes, Memory& memory, const std::uint8_t* text,
                       std::int64_t first, int valid)
      : codes_(reinterpret_cast<const std::uint8_t*>(&memory)), open_codes_(codes.open_codes) {
    if (threadIdx.x < 64) reinterpret_cast<std::uint32_t*>(&memory)[threadIdx.x] = codes.words[threadIdx.x];
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
      return;
    }
#pragma unroll
    for (int i = 0; i < kThreadItems / 4; ++i) {
      words_[i] = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (4 * i + j < valid) words_[i] |= static_cast<std::uint32_t>(from[4 * i + j]) << 8 * j;
      }
    }
  }

  __device__ unsigned int code(int item) const { return codes_[words_[item / 4] >> 8 * (item % 4) & 0xFF]; }
  __device__ bool is_open(unsigned int code) const { return code < open_codes_; }
  __device__ static bool is_close(unsigned int code) { return code >= kKinds; }
  __device__ bool fit(std::uint8_t open, std::uint8_t close) const {
    return codes_[open] + kKinds == codes_[close];
  }

 private:
  std::uint32_t words_[kThreadItems / 4];
  const std::uint8_t* codes_;
  unsigned int open_codes_;
};

/// Tokens are in shared memory, the thread's in a row. Codes have their kinds modulo kKinds.
template <>
class TileItems<std::int32_t> {
 public:
  struct Memory {
    static constexpr int kStride = kThreadItems + 1;  // so that rows begin in different banks
    std::int32_t tokens[kTileThreads * kStride];

    __device__ std::int32_t* row(int thread) { return tokens + thread * kStride; }
  };
  static constexpr bool kCodesAreExact = false;

  __device__ TileItems(const Codes<std::int32_t>& /*codes*/, Memory& memory, const std::int32_t* text,
                       std::int64_t first, int valid)
      : row_(memory.row(static_cast<int>(threadIdx.x))) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int owner = 0; owner < 32; ++owner) {
      const int count = __shfl_sync(~0u, valid, owner);
      const int thread = warp * 32 + owner;
      if (lane < count) memory.row(thread)[lane] = text[first + thread * kThreadItems + lane];
    }
    __syncwarp();
  }

  __device__ unsigned int code(int item) const {
    const std::int32_t token = row_[item];
    const unsigned int kind = static_cast<unsigned int>(token < 0 ? -token : token) % kKinds;
    return token > 0 ? kind : token < 0 ? kind + kKinds : kNeutral;
  }
  __device__ static bool is_open(unsigned int code) { return code < kKinds; }
  __device__ static bool is_close(unsigned int code) { return code >= kKinds && code != kNeutral; }
  __device__ static bool fit(std::int32_t open, std::int32_t close) {
    return Rules<std::int32_t>::Mates().fit(open, close);
  }

 private:
  static constexpr unsigned int kNeutral = 2 * kKinds;
  const std::int32_t* row_;
};

}  // namespace cumulus::bracket_match

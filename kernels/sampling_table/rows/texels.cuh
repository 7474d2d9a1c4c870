#pragma once

#include <type_traits>

#include "kernels/sampling_table/rows/arguments.h"
#include "kernels/sampling_table/rows/bounds.cuh"
#include "kernels/sampling_table/rows/register_blocked/memory.cuh"

// From the texels of a row to the weights that a block has in registers or shared memory.
namespace cumulus::sampling_table {

/// Four neighbouring texels of kChannels each, read in as few words as their size allows.
template <class T, int kChannels>
struct TexelQuad {
  static constexpr int kBytes = 4 * kChannels * static_cast<int>(sizeof(T));
  using Word =
      std::conditional_t<kBytes % 16 == 0, uint4, std::conditional_t<kBytes % 8 == 0, uint2, unsigned>>;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  alignas(Word) T texels[4 * kChannels];

  static __device__ bool fits(const T* from) {
    return reinterpret_cast<std::uintptr_t>(from) % sizeof(Word) == 0;
  }
  __device__ void load(const T* from) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      reinterpret_cast<Word*>(texels)[i] = reinterpret_cast<const Word*>(from)[i];
    }
  }
};

/// Part of a row, which a block loads into registers or shared memory.
template <class T>
class TexelRun {
 public:
  __device__ TexelRun(const RowsArguments<T>& arguments, std::uint32_t row, std::uint32_t first,
                      std::uint32_t count)
      : arguments_(arguments),
        texels_(arguments.weights.data + row * arguments.weights.row_stride +
                first * arguments.weights.channels),
        row_(row),
        first_(first),
        count_(count) {
    if (arguments.adjustments != nullptr) adjustment_ = arguments.adjustments[row / arguments.header.height];
  }

  /// Writes the bits of the weights, zeros for invalid ones and up to a whole chunk, notes the first invalid
  /// one, and returns the largest of this thread's.
  template <int kThreads>
  __device__ std::uint32_t stage(std::uint32_t* cells) const {
    switch (arguments_.weights.channels) {
      case 1:
        return stage_quads<kThreads, 1>(cells);
      case 3:
        return stage_quads<kThreads, 3>(cells);
      case 4:
        return stage_quads<kThreads, 4>(cells);
      default:
        return stage_texels<kThreads>(cells);
    }
  }

  /// Notes the first invalid weight, and returns the largest of this thread's.
  template <int kThreads>
  __device__ std::uint32_t find_largest() const {
    std::uint32_t largest = 0;
    for (std::uint32_t x = threadIdx.x; x < count_; x += kThreads) {
      const Weight found = weight(x);
      if (found.guard >= kInfinityBits) note_invalid(x);
      largest = max(largest, adjusted(found.bits, adjustment_));
    }
    return largest;
  }

  /// The bits of weight x, 0 for an invalid one.
  __device__ std::uint32_t bits(std::uint32_t x) const { return adjusted(weight(x).bits, adjustment_); }

  /// The bits of the thread's kThreadCells weights from `first` on, as `stage` writes them; returns the
  /// largest. Calls `meanwhile` when texels have been requested.
  template <class Meanwhile>
  __device__ std::uint32_t load_thread_cells(std::uint32_t first, std::uint32_t (&bits)[kThreadCells],
                                             const Meanwhile& meanwhile) const {
    switch (arguments_.weights.channels) {
      case 1:
        return load_thread_quads<1>(first, bits, meanwhile);
      case 3:
        return load_thread_quads<3>(first, bits, meanwhile);
      case 4:
        return load_thread_quads<4>(first, bits, meanwhile);
      default:
        return load_thread_quads<2>(first, bits, meanwhile);
    }
  }

 private:
  template <int kChannels, class Meanwhile>
  __device__ std::uint32_t load_thread_quads(std::uint32_t first, std::uint32_t (&bits)[kThreadCells],
                                             const Meanwhile& meanwhile) const {
    using Texels = TexelQuad<T, kChannels>;
    const T* const from = texels_ + first * kChannels;
    Texels loaded[kThreadCells / kQuad];
    if (Texels::fits(from)) {
#pragma unroll
      for (std::uint32_t q = 0; q < kThreadCells / kQuad; ++q) loaded[q].load(from + q * kQuad * kChannels);
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < kThreadCells * kChannels; ++i) {
        loaded[i / (kQuad * kChannels)].texels[i % (kQuad * kChannels)] = from[i];
      }
    }
    meanwhile();
    return weigh_texels<kChannels>(first, loaded, bits);
  }

  template <int kChannels>
  __device__ std::uint32_t weigh_texels(std::uint32_t first,
                                        const TexelQuad<T, kChannels> (&loaded)[kThreadCells / kQuad],
                                        std::uint32_t (&bits)[kThreadCells]) const {
    if constexpr (std::is_same_v<T, float> && kChannels == 1) {
      std::uint32_t largest = 0;
#pragma unroll
      for (std::uint32_t i = 0; i < kThreadCells; ++i) {
        bits[i] = float_bits(loaded[i / kQuad].texels[i % kQuad]);
        if (i % 2 == 1) largest = __vimax3_u32(largest, bits[i - 1], bits[i]);
      }
      // Bits below those of infinity are a weight as it stands.
      if (largest < kInfinityBits && arguments_.adjustments == nullptr) return largest;
    }
    const WeightRule rule{kChannels >= 3 ? 3 : 1, arguments_.rule.clamp, arguments_.rule.luminance};
    std::uint32_t largest = 0;
    std::uint32_t guard = 0;
#pragma unroll
    for (std::uint32_t i = 0; i < kThreadCells; ++i) {
      const Weight weight = load_weight(loaded[i / kQuad].texels + i % kQuad * kChannels, rule);
      guard = max(guard, weight.guard);
      bits[i] = arguments_.adjustments == nullptr ? weight.bits : adjusted(weight.bits, adjustment_);
      largest = max(largest, bits[i]);
    }
    if (guard >= kInfinityBits) note_invalid(first);
    return largest;
  }

  template <int kThreads, int kChannels>
  __device__ std::uint32_t stage_quads(std::uint32_t* cells) const {
    using Texels = TexelQuad<T, kChannels>;
    if (count_ % kQuad != 0 || !Texels::fits(texels_)) return stage_texels<kThreads>(cells);
    const std::uint32_t quads = chunks_of(count_) * (kChunk / kQuad);
    std::uint32_t largest = 0;
#pragma unroll 4
    for (std::uint32_t quad = threadIdx.x; quad < quads; quad += kThreads) {
      const std::uint32_t cell = quad * kQuad;
      Texels loaded = {};
      if (cell < count_) loaded.load(texels_ + cell * kChannels);
      std::uint32_t bits[kQuad];
      std::uint32_t guard = 0;
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        const Weight weight = load_weight(loaded.texels + k * kChannels, arguments_.rule);
        guard = max(guard, weight.guard);
        bits[k] = cell < count_ ? adjusted(weight.bits, adjustment_) : 0;
        largest = max(largest, bits[k]);
      }
      if (guard >= kInfinityBits) note_invalid(cell);
      *reinterpret_cast<uint4*>(cells + cell) = make_uint4(bits[0], bits[1], bits[2], bits[3]);
    }
    return largest;
  }

  template <int kThreads>
  __device__ std::uint32_t stage_texels(std::uint32_t* cells) const {
    std::uint32_t largest = 0;
    for (std::uint32_t x = threadIdx.x; x < chunks_of(count_) * kChunk; x += kThreads) {
      std::uint32_t bits = 0;
      if (x < count_) {
        const Weight found = weight(x);
        bits = adjusted(found.bits, adjustment_);
        if (found.guard >= kInfinityBits) note_invalid(x);
      }
      cells[x] = bits;
      largest = max(largest, bits);
    }
    return largest;
  }

  __device__ Weight weight(std::uint32_t x) const {
    return load_weight(texels_ + x * arguments_.weights.channels, arguments_.rule);
  }

  /// Of the texels from x on, one of which is invalid.
  __device__ void note_invalid(std::uint32_t x) const {
    const T* texel = texels_ + x * arguments_.weights.channels;
    while (load_weight(texel, arguments_.rule).guard < kInfinityBits) {
      texel += arguments_.weights.channels;
      ++x;
    }
    const std::uint64_t key = invalid_key(first_ + x, row_, arguments_.header.width,
                                          first_invalid_channel(texel, arguments_.rule.counted));
    atomicMin(reinterpret_cast<unsigned long long*>(&arguments_.findings->first_invalid),
              static_cast<unsigned long long>(key));
  }

  const RowsArguments<T>& arguments_;
  const T* texels_;
  std::uint32_t row_;
  std::uint32_t first_;
  std::uint32_t count_;
  WeightAdjustment adjustment_;
};

}  // namespace cumulus::sampling_table

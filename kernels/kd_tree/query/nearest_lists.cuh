#pragma once

// The nearest points so far of one thread's query, as keys that order as (distance, index) does. Where there
// are fewer than wanted, the key of no point at the radius stands in for each: nothing that is not before it
// is inserted, and a list is always full.
//
// A list ends in its column of shared memory, sorted: keys i of a warp's lanes lie side by side, kColumnPitch
// apart from keys i + 1, so that lanes write their columns, and read across them, without bank conflicts.

#include <cstdint>

#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {

inline constexpr std::uint32_t kNoPoint = 0xFFFFFFFFu;

/// No distance is negative.
__device__ inline std::uint64_t candidate_key(float squared_distance, std::uint32_t index) {
  return static_cast<std::uint64_t>(__float_as_uint(squared_distance)) << 32 | index;
}
__device__ inline float key_distance(std::uint64_t key) {
  return __uint_as_float(static_cast<unsigned>(key >> 32));
}
__device__ inline std::uint32_t key_index(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

/// Few, sorted, in registers: every index is known to the compiler.
class RegisterList {
 public:
  static constexpr int kCapacity = kRegisterListCapacity;
  static constexpr int kThreads = kRegisterListThreads;

  __device__ RegisterList(int wanted, float squared_radius, std::uint64_t* column)
      : wanted_(wanted), column_(column) {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i)
      keys_[i] = i < kCapacity - wanted ? 0 : candidate_key(squared_radius, kNoPoint);
  }

  /// Nothing farther can enter the list.
  __device__ float limit() const { return key_distance(keys_[kCapacity - 1]); }

  __device__ void offer(std::uint64_t key) {
    bool before = key < keys_[kCapacity - 1];
    if (!before) return;
#pragma unroll
    for (int i = kCapacity - 1; i > 0; --i) {
      const bool before_last = key < keys_[i - 1];
      keys_[i] = before_last ? keys_[i - 1] : before ? key : keys_[i];
      before = before_last;
    }
    if (before) keys_[0] = key;
  }

  __device__ void finish() {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i) {
      const int place = i - (kCapacity - wanted_);
      if (place >= 0) column_[static_cast<unsigned>(place) * kColumnPitch] = keys_[i];
    }
  }

 private:
  const int wanted_;
  std::uint64_t* const column_;
  std::uint64_t keys_[kCapacity];  // in front of the wanted ones, zeros, which nothing comes before
};

/// Many, in the column, as a heap with the last of them on top: key i's children are kChildren * i + 1 and
/// those that follow.
class HeapList {
 public:
  static constexpr int kThreads = kHeapListThreads;

  __device__ HeapList(int wanted, float squared_radius, std::uint64_t* column)
      : wanted_(static_cast<unsigned>(wanted)),
        column_(column),
        limit_(candidate_key(squared_radius, kNoPoint)) {
    for (unsigned i = 0; i < wanted_; ++i) at(i) = limit_;
  }

  __device__ float limit() const { return key_distance(limit_); }

  __device__ void offer(std::uint64_t key) {
    if (key >= limit_) return;
    sink(key, wanted_);
    limit_ = at(0);
  }

  /// Takes the top off and puts it behind what remains, again and again.
  __device__ void finish() {
    for (unsigned rest = wanted_ - 1; rest > 0; --rest) {
      const std::uint64_t top = at(0);
      sink(at(rest), rest);
      at(rest) = top;
    }
  }

 private:
  static constexpr unsigned kChildren = 4;

  __device__ std::uint64_t& at(unsigned i) const { return column_[i * kColumnPitch]; }

  /// Puts `key` in the place of the top of a heap of `count`.
  __device__ void sink(std::uint64_t key, unsigned count) {
    unsigned place = 0;
    for (;;) {
      const unsigned first = kChildren * place + 1;
      if (first >= count) break;
      std::uint64_t last = at(first);
      unsigned child = first;
#pragma unroll
      for (unsigned other = 1; other < kChildren; ++other) {
        const std::uint64_t its = first + other < count ? at(first + other) : 0;
        if (its <= last) continue;
        last = its;
        child = first + other;
      }
      if (last <= key) break;
      at(place) = last;
      place = child;
    }
    at(place) = key;
  }

  const unsigned wanted_;
  std::uint64_t* const column_;
  std::uint64_t limit_;
};

}  // namespace cumulus::kd_tree

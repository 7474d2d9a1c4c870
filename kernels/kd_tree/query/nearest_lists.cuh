#pragma once

// The nearest points so far of one thread's query, as keys that order as (distance, index) does. Where there
// are fewer than wanted, the key of no point at the radius stands in for each: nothing that is not before it
// is inserted, and a list is full in the end.
//
// A list ends in its column of shared memory, sorted: keys i of a warp's lanes lie side by side, kColumnPitch
// apart from keys i + 1, so that lanes write their columns, and read across them, without bank conflicts.

#include <cstdint>
#include <type_traits>

#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {

inline constexpr std::uint32_t kNoPoint = 0xFFFFFFFFu;

/// A FLOAT64 distance and an index. The least of all: {0, 0}.
struct WideKey {
  double distance;
  std::uint32_t index;

  __device__ bool operator<(const WideKey& other) const {
    return distance < other.distance || (distance == other.distance && index < other.index);
  }
};

/// Of FLOAT32 both fit into one number. No such key is a NaN as FLOAT64, where one instruction compares.
__device__ inline bool comes_before(std::uint64_t a, std::uint64_t b) {
  return __longlong_as_double(static_cast<long long>(a)) < __longlong_as_double(static_cast<long long>(b));
}
__device__ inline bool comes_before(const WideKey& a, const WideKey& b) { return a < b; }
template <class T>
using CandidateKey = std::conditional_t<sizeof(T) == 4, std::uint64_t, WideKey>;

/// No distance is negative.
__device__ inline std::uint64_t candidate_key(float squared_distance, std::uint32_t index) {
  return static_cast<std::uint64_t>(__float_as_uint(squared_distance)) << 32 | index;
}
__device__ inline WideKey candidate_key(double squared_distance, std::uint32_t index) {
  return {squared_distance, index};
}
__device__ inline float key_distance(std::uint64_t key) {
  return __uint_as_float(static_cast<unsigned>(key >> 32));
}
__device__ inline double key_distance(const WideKey& key) { return key.distance; }
__device__ inline std::uint32_t key_index(std::uint64_t key) { return static_cast<std::uint32_t>(key); }
__device__ inline std::uint32_t key_index(const WideKey& key) { return key.index; }

/// Shared memory of a warp's lists.
template <class T>
constexpr std::size_t column_bytes(std::size_t keys) {
  return keys * kColumnPitch * (sizeof(T) + sizeof(std::uint32_t));
}

/// A lane's column of keys, in the shared memory of a block's `warps`, each with room for `keys` of each
/// lane.
template <class T>
class KeyColumn;

template <>
class KeyColumn<float> {
 public:
  __device__ KeyColumn(std::uint64_t* memory, unsigned keys, unsigned /*warps*/)
      : keys_(memory + threadIdx.x / 32 * keys * kColumnPitch) {}

  __device__ KeyColumn of_lane(unsigned lane) const {
    KeyColumn column = *this;
    column.keys_ += lane;
    return column;
  }
  __device__ std::uint64_t load(unsigned i) const { return keys_[i * kColumnPitch]; }
  __device__ void store(unsigned i, std::uint64_t key) const { keys_[i * kColumnPitch] = key; }

 private:
  std::uint64_t* keys_;
};

/// Indices behind all distances: 12 bytes a key, where a WideKey takes 16.
template <>
class KeyColumn<double> {
 public:
  __device__ KeyColumn(std::uint64_t* memory, unsigned keys, unsigned warps) {
    const unsigned first = threadIdx.x / 32 * keys * kColumnPitch;
    distances_ = reinterpret_cast<double*>(memory) + first;
    indices_ = reinterpret_cast<std::uint32_t*>(memory + warps * keys * kColumnPitch) + first;
  }

  __device__ KeyColumn of_lane(unsigned lane) const {
    KeyColumn column = *this;
    column.distances_ += lane;
    column.indices_ += lane;
    return column;
  }
  __device__ WideKey load(unsigned i) const {
    return {distances_[i * kColumnPitch], indices_[i * kColumnPitch]};
  }
  __device__ void store(unsigned i, const WideKey& key) const {
    distances_[i * kColumnPitch] = key.distance;
    indices_[i * kColumnPitch] = key.index;
  }

 private:
  double* distances_;
  std::uint32_t* indices_;
};

/// Few, sorted, in registers: every index is known to the compiler.
template <class T>
class RegisterList {
 public:
  using Key = CandidateKey<T>;
  static constexpr bool kInRegisters = true;
  static constexpr int kCapacity = kRegisterListCapacity;
  static constexpr int kThreads = kRegisterListThreads;
  static constexpr std::size_t kMaxSharedBytes = kThreads / 32 * column_bytes<T>(kCapacity);

  __device__ RegisterList(int wanted, T squared_radius, const KeyColumn<T>& column)
      : wanted_(wanted), column_(column) {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i)
      keys_[i] = i < kCapacity - wanted ? candidate_key(T{0}, 0) : candidate_key(squared_radius, kNoPoint);
  }

  __device__ int wanted() const { return wanted_; }
  /// Nothing farther can enter the list.
  __device__ T limit() const { return key_distance(keys_[kCapacity - 1]); }

  __device__ void offer(const Key& key) {
    bool before = comes_before(key, keys_[kCapacity - 1]);
    if (!before) return;
#pragma unroll
    for (int i = kCapacity - 1; i > 0; --i) {
      const bool before_last = comes_before(key, keys_[i - 1]);
      keys_[i] = before_last ? keys_[i - 1] : before ? key : keys_[i];
      before = before_last;
    }
    if (before) keys_[0] = key;
  }

  __device__ void finish() {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i) {
      const int place = i - (kCapacity - wanted_);
      if (place >= 0) column_.store(static_cast<unsigned>(place), keys_[i]);
    }
  }

 private:
  const int wanted_;
  const KeyColumn<T> column_;
  Key keys_[kCapacity];  // in front of the wanted ones, zeros, which nothing comes before
};

/// Many, in the column, as a heap with the last of them on top: key i's children are kChildren * i + 1 and
/// those that follow.
template <class T>
class HeapList {
 public:
  using Key = CandidateKey<T>;
  static constexpr bool kInRegisters = false;
  static constexpr int kThreads = kHeapListThreads;
  static constexpr std::size_t kMaxSharedBytes = kThreads / 32 * column_bytes<T>(kMaxNeighbors);

  __device__ HeapList(int wanted, T squared_radius, const KeyColumn<T>& column)
      : wanted_(static_cast<unsigned>(wanted)),
        column_(column),
        limit_(candidate_key(squared_radius, kNoPoint)) {}

  __device__ T limit() const { return key_distance(limit_); }

  __device__ void offer(const Key& key) {
    if (!comes_before(key, limit_)) return;
    if (count_ < wanted_) return append(key);
    sink(key, 0, wanted_);
    limit_ = column_.load(0);
  }

  /// Takes the top off and puts it behind what remains, again and again.
  __device__ void finish() {
    for (const Key none = limit_; count_ < wanted_;) append(none);
    for (unsigned rest = wanted_ - 1; rest > 0; --rest) {
      const Key top = column_.load(0);
      sink(column_.load(rest), 0, rest);
      column_.store(rest, top);
    }
  }

 private:
  static constexpr unsigned kChildren = 4;

  /// Keys are a heap once all wanted are there.
  __device__ void append(const Key& key) {
    column_.store(count_++, key);
    if (count_ < wanted_) return;
    for (unsigned place = (wanted_ + kChildren - 2) / kChildren; place-- > 0;)
      sink(column_.load(place), place, wanted_);
    limit_ = column_.load(0);
  }

  /// Puts `key` in the place of the top of a heap of `count`, or of a part of it.
  __device__ void sink(const Key& key, unsigned place, unsigned count) {
    for (;;) {
      const unsigned first = kChildren * place + 1;
      if (first >= count) break;
      Key last = column_.load(first);
      unsigned child = first;
#pragma unroll
      for (unsigned other = 1; other < kChildren; ++other) {
        const Key its = first + other < count ? column_.load(first + other) : candidate_key(T{0}, 0);
        if (!comes_before(last, its)) continue;
        last = its;
        child = first + other;
      }
      if (!comes_before(key, last)) break;
      column_.store(place, last);
      place = child;
    }
    column_.store(place, key);
  }

  const unsigned wanted_;
  const KeyColumn<T> column_;
  unsigned count_ = 0;
  Key limit_;
};

}  // namespace cumulus::kd_tree

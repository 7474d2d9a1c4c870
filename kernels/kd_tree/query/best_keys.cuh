#pragma once

// The best keys of a warp's queries, which any of its lanes may lower.

#include <cstdint>

#include "kernels/kd_tree/query/nearest_lists.cuh"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

/// The nearest point so far, of equally near ones that of the least index; or none within the radius.
template <class T>
struct ClosestPoint {
  static constexpr std::uint32_t kNone = ~0u;
  T limit;
  std::uint32_t position = kNone;

  __device__ void offer(T distance, std::uint32_t its, const std::int64_t* idx_array) {
    if (!(distance <= limit)) return;
    if (distance == limit && position != kNone && idx_array[its] >= idx_array[position]) return;
    limit = distance;
    position = its;
  }
  __device__ CandidateKey<T> key(const std::int64_t* idx_array) const {
    return candidate_key(limit, static_cast<std::uint32_t>(idx_array[position]));
  }
};

/// In shared memory, a key for each lane's query.
template <class T>
class BestKeys;

template <>
class BestKeys<float> {
 public:
  __device__ void set(unsigned lane, std::uint64_t key) { keys_[lane] = key; }
  __device__ std::uint64_t of(unsigned lane) const { return keys_[lane]; }
  __device__ float limit(unsigned lane) const { return key_distance(keys_[lane]); }

  /// By the whole warp: lanes that have `found` a point offer it to a query.
  __device__ void offer(bool found, unsigned owner, const ClosestPoint<float>& closest,
                        const std::int64_t* idx_array) {
    if (found) {
      atomicMin(reinterpret_cast<unsigned long long*>(&keys_[owner]),
                static_cast<unsigned long long>(closest.key(idx_array)));
    }
    __syncwarp();
  }

 private:
  std::uint64_t keys_[32];
};

/// No atomic operation lowers a key of 12 bytes: distances are lowered first, then the indices of those that
/// are the least.
template <>
class BestKeys<double> {
 public:
  __device__ void set(unsigned lane, const WideKey& key) {
    distances_[lane] = bits(key.distance);
    indices_[lane] = key.index;
  }
  __device__ WideKey of(unsigned lane) const { return {limit(lane), indices_[lane]}; }
  __device__ double limit(unsigned lane) const {
    return __longlong_as_double(static_cast<long long>(distances_[lane]));
  }

  __device__ void offer(bool found, unsigned owner, const ClosestPoint<double>& closest,
                        const std::int64_t* idx_array) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned long long before = distances_[lane];
    __syncwarp();
    if (found) atomicMin(&distances_[owner], bits(closest.limit));
    __syncwarp();
    if (distances_[lane] < before) indices_[lane] = kNoPoint;
    __syncwarp();
    if (found && distances_[owner] == bits(closest.limit))
      atomicMin(&indices_[owner], closest.key(idx_array).index);
    __syncwarp();
  }

 private:
  /// No distance is negative: they order as their bits do.
  __device__ static unsigned long long bits(double distance) {
    return static_cast<unsigned long long>(__double_as_longlong(distance));
  }

  unsigned long long distances_[32];
  std::uint32_t indices_[32];
};

}  // namespace cumulus::kd_tree

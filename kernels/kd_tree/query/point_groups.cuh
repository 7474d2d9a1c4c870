#pragma once

// A tree's points, read 16 bytes at a time, and how far they are from a query.
//
// Most points of a leaf are too far. That is found by fused distances: squares added by fused operations,
// without care for infinities, half the instructions. Points that may be near enough are measured again, as
// results are.

#include <cstdint>
#include <type_traits>

#include "kernels/kd_tree/query/search.cuh"

namespace cumulus::kd_tree {

/// As many of one tree's points as begin where 16 bytes do again: four of FLOAT32, two of FLOAT64.
template <class T, int D>
struct PointGroups {
  static constexpr std::uint32_t kPoints = 16 / sizeof(T);
  const T* points;
  std::uint32_t count;
  std::uint32_t
      vector_groups;  // that 16 bytes are read of at once: none where the tree's points begin elsewhere

  __device__ PointGroups(const Search<T>& search, std::int64_t tree)
      : points(search.tree_points + tree * search.shape.points * D),
        count(static_cast<std::uint32_t>(search.shape.points)),
        vector_groups(reinterpret_cast<std::uintptr_t>(points) % 16 == 0 ? count / kPoints : 0) {}

  /// Of a group's points the squared distances from a query, of the last group that of the last point again
  /// where there are no more; or the fused ones, which are NaN where both have the same infinity. `period` is
  /// read where axes close on themselves.
  template <bool kPeriodic, bool kFused>
  __device__ void squared_distances(const T* query, const T* period, std::uint32_t group,
                                    T (&distances)[kPoints]) const {
    T coordinates[kPoints * D];
    load(group, coordinates);
#pragma unroll
    for (unsigned i = 0; i < kPoints; ++i)
      distances[i] = squared_distance<kPeriodic, kFused>(query, period, coordinates + i * D);
  }

  /// One point's; it is read 16 bytes at a time where all points begin where that can be.
  template <bool kPeriodic, bool kFused = false>
  __device__ T squared_distance_of(const T* query, const T* period, std::uint32_t position) const {
    T coordinates[D];
    load_point(position, coordinates);
    return squared_distance<kPeriodic, kFused>(query, period, coordinates);
  }

 private:
  static constexpr bool kWholeVectors = D % kPoints == 0;  // of each point alone

  template <bool kPeriodic, bool kFused>
  __device__ static T squared_distance(const T* query, const T* period, const T* point) {
    T sum = 0;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      T distance;
      if constexpr (kPeriodic) {
        distance = periodic_axis_distance(query[axis], point[axis], point[axis], period[axis]);
      } else {
        distance = kFused ? query[axis] - point[axis] : axis_distance(query[axis], point[axis]);
      }
      sum = kFused ? fma(distance, distance, sum) : add(sum, multiply(distance, distance));
    }
    return sum;
  }

  using Vector = std::conditional_t<sizeof(T) == 4, float4, double2>;

  __device__ static void unpack(const float4& vector, float* to) {
    to[0] = vector.x;
    to[1] = vector.y;
    to[2] = vector.z;
    to[3] = vector.w;
  }
  __device__ static void unpack(const double2& vector, double* to) {
    to[0] = vector.x;
    to[1] = vector.y;
  }

  __device__ void load_point(std::uint32_t position, T (&coordinates)[D]) const {
    const T* point = points + static_cast<std::int64_t>(position) * D;
    if constexpr (kWholeVectors) {
      if (vector_groups > 0) {
#pragma unroll
        for (unsigned i = 0; i < D / kPoints; ++i)
          unpack(__ldg(reinterpret_cast<const Vector*>(point) + i), coordinates + kPoints * i);
        return;
      }
    }
#pragma unroll
    for (int axis = 0; axis < D; ++axis) coordinates[axis] = point[axis];
  }

  __device__ void load(std::uint32_t group, T (&coordinates)[kPoints * D]) const {
    if (group < vector_groups) {
      const Vector* vectors = reinterpret_cast<const Vector*>(points) + static_cast<std::int64_t>(group) * D;
#pragma unroll
      for (int i = 0; i < D; ++i) unpack(__ldg(vectors + i), coordinates + kPoints * i);
      return;
    }
#pragma unroll
    for (unsigned i = 0; i < kPoints; ++i) {
      const std::int64_t row = static_cast<std::int64_t>(min(group * kPoints + i, count - 1)) * D;
#pragma unroll
      for (int axis = 0; axis < D; ++axis) coordinates[i * D + axis] = points[row + axis];
    }
  }
};

}  // namespace cumulus::kd_tree

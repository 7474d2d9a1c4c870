#include <cuda_runtime.h>

#include <cub/device/device_radix_sort.cuh>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/build/take_points.cuh"
#include "kernels/kd_tree/left_balanced/arrange.h"
#include "kernels/kd_tree/left_balanced/places.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/threads.cuh"

// Level after level, all points are sorted by the part of their tree that they are in, then by coordinate and
// index: a stable sort by coordinate, then one by part. Each then knows its place in the tree's inorder, and
// with it its part of the next level.
namespace cumulus::kd_tree {
namespace {

/// The first NaN of all coordinates.
/// Owns: thread i coordinate i.
/// Reads: the coordinate.
/// Writes: the least number, by atomic minima.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void find_first_nan(const T* points, std::int64_t coordinates, unsigned long long* first_nan) {
  const std::int64_t i = thread_number();
  if (i < coordinates && points[i] != points[i]) atomicMin(first_nan, static_cast<unsigned long long>(i));
}

/// All points in the order of their indices, with their keys along an axis.
/// Owns: thread i point i.
/// Reads: the point's coordinate along the axis.
/// Writes: its key and its number.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: I. Wald, "GPU-friendly, parallel, and (almost-)in-place construction of left-balanced k-d trees",
///   2022, with parts named by their place in the inorder.
template <class T>
__global__ void read_axis(const T* points, KdTreeShape shape, int axis, KeyOf<T>* keys,
                          std::uint32_t* order) {
  const std::int64_t i = thread_number();
  if (i >= shape.all_points()) return;
  keys[i] = ordered_key(points[i * shape.dimensions + axis]);
  order[i] = static_cast<std::uint32_t>(i);
}

/// The parts of points in sorted order, as keys of the next sort.
/// Owns: thread i place i of the order.
/// Reads: the point at the place, and its part.
/// Writes: the key.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: I. Wald, "GPU-friendly, parallel, and (almost-)in-place construction of left-balanced k-d trees",
///   2022, with parts named by their place in the inorder.
__global__ void read_parts(std::int64_t points, const std::uint32_t* order, const std::uint32_t* parts,
                           std::uint32_t* keys) {
  const std::int64_t place = thread_number();
  if (place < points) keys[place] = parts[order[place]];
}

/// Each point's part of the next level. A part is named by its first place, counted through all trees.
/// Owns: thread i place i of the order.
/// Reads: the point at the place.
/// Writes: the point's part.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: I. Wald, "GPU-friendly, parallel, and (almost-)in-place construction of left-balanced k-d trees",
///   2022, with parts named by their place in the inorder.
__global__ void name_parts(KdTreeShape shape, int depth, const std::uint32_t* order, std::uint32_t* parts) {
  const std::int64_t place = thread_number();
  if (place >= shape.all_points()) return;
  const std::int64_t first = place / shape.points * shape.points;
  parts[order[place]] =
      static_cast<std::uint32_t>(first + left_balanced_part(shape.points, place - first, depth).begin);
}

/// Nodes from the order, which is now the inorder of the trees.
/// Owns: thread i place i of the order.
/// Reads: the point at the place.
/// Writes: its node's coordinates and index.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: I. Wald, "GPU-friendly, parallel, and (almost-)in-place construction of left-balanced k-d trees",
///   2022, with parts named by their place in the inorder.
template <class T>
__global__ void store_nodes(const T* points, KdTreeShape shape, int levels, const std::uint32_t* order,
                            T* nodes, std::int64_t* idx_array) {
  const std::int64_t place = thread_number();
  if (place >= shape.all_points()) return;
  const std::int64_t first = place / shape.points * shape.points;
  const std::int64_t node = first + left_balanced_part(shape.points, place - first, levels).node;
  const std::int64_t point = order[place];
  for (int axis = 0; axis < shape.dimensions; ++axis)
    nodes[node * shape.dimensions + axis] = points[point * shape.dimensions + axis];
  idx_array[node] = point - first;
}

template <class T>
class Arrangement {
 public:
  Arrangement(CudaExecutor& executor, const LeftBalancedPlan& plan, const ArrangeJob<T>& job)
      : executor_(executor),
        stream_(executor.stream()),
        plan_(plan),
        points_(job.points),
        shape_(job.shape),
        arrays_(job.arrays) {
    const auto all = static_cast<std::size_t>(shape_.all_points());
    for (KeyOf<T>*& keys : keys_) keys = executor.scratch<KeyOf<T>>(all).data();
    for (std::uint32_t*& order : orders_) order = executor.scratch<std::uint32_t>(all).data();
    parts_ = executor.scratch<std::uint32_t>(all);
    sort_memory_ = executor.scratch<std::byte>(plan.sort_bytes);
    first_nan_ = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
    report_ = executor.scratch<KdTreeReport>(1).data();
  }

  void run(KdTreeReport* report) {
    CUMULUS_CUDA(cudaMemsetAsync(first_nan_, 0xFF, sizeof(*first_nan_), stream_));
    if (shape_.all_points() > 0) {
      find_first_nan<<<point_blocks(shape_.coordinates()), kPointThreads, 0, stream_>>>(
          points_, shape_.coordinates(), first_nan_);
      sort_levels();
    }
    describe_nan<T><<<1, 1, 0, stream_>>>(shape_, first_nan_, 0, report_);
    CUMULUS_CUDA(cudaGetLastError());
    executor_.download({reinterpret_cast<const std::byte*>(report_), sizeof(*report)},
                       {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }

 private:
  unsigned blocks() const { return point_blocks(shape_.all_points()); }

  void sort_levels() {
    cub::DoubleBuffer<std::uint32_t> order(orders_[0], orders_[1]);
    name_parts_of_indices();
    for (int level = 0; level < plan_.levels; ++level) {
      executor_.check_interrupt();
      cub::DoubleBuffer<KeyOf<T>> keys(keys_[0], keys_[1]);
      read_axis<<<blocks(), kPointThreads, 0, stream_>>>(points_, shape_, level % shape_.dimensions,
                                                         keys.Current(), order.Current());
      sort(keys, order, 8 * static_cast<int>(sizeof(KeyOf<T>)));
      cub::DoubleBuffer<std::uint32_t> parts(reinterpret_cast<std::uint32_t*>(keys_[0]),
                                             reinterpret_cast<std::uint32_t*>(keys_[1]));
      read_parts<<<blocks(), kPointThreads, 0, stream_>>>(shape_.all_points(), order.Current(), parts_.data(),
                                                          parts.Current());
      sort(parts, order, plan_.part_bits);
      name_parts<<<blocks(), kPointThreads, 0, stream_>>>(shape_, level + 1, order.Current(), parts_.data());
    }
    store_nodes<<<blocks(), kPointThreads, 0, stream_>>>(points_, shape_, plan_.levels, order.Current(),
                                                         arrays_.points.data(), arrays_.idx_array.data());
    CUMULUS_CUDA(cudaGetLastError());
  }

  /// Before the first level each tree is one part, and any order within it will do.
  void name_parts_of_indices() {
    read_axis<<<blocks(), kPointThreads, 0, stream_>>>(points_, shape_, 0, keys_[0], orders_[0]);
    name_parts<<<blocks(), kPointThreads, 0, stream_>>>(shape_, 0, orders_[0], parts_.data());
  }

  template <class Key>
  void sort(cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<std::uint32_t>& order, int bits) {
    std::size_t bytes = sort_memory_.size();
    CUMULUS_CUDA(cub::DeviceRadixSort::SortPairs(sort_memory_.data(), bytes, keys, order, shape_.all_points(),
                                                 0, bits, stream_));
  }

  CudaExecutor& executor_;
  CUstream_st* const stream_;
  const LeftBalancedPlan plan_;
  const T* const points_;
  const KdTreeShape shape_;
  const LeftBalancedArrays<T, Space::kDevice> arrays_;
  KeyOf<T>* keys_[2];
  std::uint32_t* orders_[2];
  DeviceSpan<std::uint32_t> parts_;  // of each point
  DeviceSpan<std::byte> sort_memory_;
  unsigned long long* first_nan_;
  KdTreeReport* report_;
};

}  // namespace

template <class T>
void arrange(CudaExecutor& executor, const LeftBalancedPlan& plan, const ArrangeJob<T>& job,
             KdTreeReport* report) {
  Arrangement<T>(executor, plan, job).run(report);
}

template void arrange(CudaExecutor&, const LeftBalancedPlan&, const ArrangeJob<float>&, KdTreeReport*);
template void arrange(CudaExecutor&, const LeftBalancedPlan&, const ArrangeJob<double>&, KdTreeReport*);

}  // namespace cumulus::kd_tree

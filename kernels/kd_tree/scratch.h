#pragma once

#include <cstddef>

#include "kernels/kd_tree/method.h"

// Scratch bytes of each call: exactly those of the plan that is chosen for it. T is float or double. On a GPU
// the plan is the one of every supported GPU, but for builds from samples, which `device` decides.
namespace cumulus {

template <class T, Space S>
std::size_t build_kd_tree_scratch_bytes(const KdTreeShape& shape, const KdTreeOptions& options,
                                        const DeviceNumbers& device) {
  if constexpr (S == Space::kHost) return kd_tree::choose_cpu_build(sizeof(T), shape, 1).scratch_bytes;
  return scratch_bytes_of(kd_tree::choose_build(sizeof(T), shape, options, device));
}

template <class T, Space S>
std::size_t arrange_left_balanced_scratch_bytes(const KdTreeShape& shape) {
  if constexpr (S == Space::kHost) return kd_tree::cpu_left_balanced_scratch_bytes(sizeof(T), shape);
  return kd_tree::choose_left_balanced(sizeof(T), shape).scratch_bytes;
}

template <class T, Space S>
std::size_t find_nearest_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search,
                                       int neighbors) {
  if constexpr (S == Space::kHost) return kd_tree::choose_cpu_query(shape, search).scratch_bytes;
  return scratch_bytes_of(
      kd_tree::choose_nearest(sizeof(T), shape, search, neighbors, kd_tree::kMinSupportedGpu));
}

template <class T, Space S>
std::size_t sum_nearest_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search, int neighbors) {
  const std::size_t search_bytes = find_nearest_scratch_bytes<T, S>(shape, search, neighbors);
  if constexpr (S == Space::kHost) return search_bytes;
  return search_bytes + kd_tree::summed_list_bytes(sizeof(T), shape, search, neighbors);
}

/// sum_within's too.
template <Space S>
std::size_t count_within_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  if constexpr (S == Space::kHost) return kd_tree::choose_cpu_query(shape, search).scratch_bytes;
  return kd_tree::choose_count().scratch_bytes;
}

template <Space S>
std::size_t list_within_scratch_bytes(const KdTreeShape& shape, const NeighborSearch& search) {
  if constexpr (S == Space::kHost) return kd_tree::choose_cpu_query(shape, search).scratch_bytes;
  return kd_tree::choose_list(shape, search).scratch_bytes;
}

}  // namespace cumulus

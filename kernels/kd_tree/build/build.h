#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/memory.h"
#include "kernels/core/views.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/method.h"

// Builds on a GPU, of checked arguments. T is float or double.
namespace cumulus::kd_tree {

template <class T>
struct BuildJob {
  const T* points;  // [trees, points, dimensions]
  KdTreeShape shape;
  KdTreeOptions options;
  KdTreeArrays<T, Space::kDevice> tree;
  std::int64_t crowded = 0;  // what the report is to say of it
};

/// Pieces of one block of scratch memory, one after another, as ScratchSize counts them.
class ScratchPieces {
 public:
  explicit ScratchPieces(DeviceSpan<std::byte> block) : block_(block) {}

  template <class T>
  DeviceSpan<T> take(std::size_t count) {
    const std::size_t bytes = align_block(count * sizeof(T));
    if (bytes > block_.size() - used_)
      throw std::logic_error("kd_tree: a plan's scratch memory is too small");
    const DeviceSpan<T> piece(reinterpret_cast<T*>(block_.data() + used_), count);
    used_ += bytes;
    return piece;
  }

 private:
  DeviceSpan<std::byte> block_;
  std::size_t used_ = 0;
};

/// In scratch memory of the plan's size.
template <class T, class Method>
void build_trees(CudaExecutor& executor, const Method& method, DeviceSpan<std::byte> scratch,
                 const BuildJob<T>& job, KdTreeReport* report);

/// `to` is not empty.
void permute(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
             DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to);

}  // namespace cumulus::kd_tree

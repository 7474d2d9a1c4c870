#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/build/blocks.cuh"
#include "kernels/kd_tree/build/build.h"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/build/levels.cuh"
#include "kernels/kd_tree/build/partition.cuh"
#include "kernels/kd_tree/build/take_points.cuh"
#include "kernels/kd_tree/threads.cuh"

namespace cumulus::kd_tree {
namespace {

template <class T>
struct Buffers {
  T* second_coordinates;
  std::uint32_t* second_order;
  Segment<KeyOf<T>>* segments;
  KeyOf<T>* bounds[2];  // of the level after the last split and every second before it; of the others
  DeviceSpan<std::uint32_t> histograms;
  DeviceSpan<std::uint32_t> arrived;
  std::uint64_t* tile_sides;
  unsigned long long* first_nan;
  KdTreeReport* report;

  Buffers(ScratchPieces scratch, const KdTreeShape& shape, const LevelSplits& splits) {
    second_coordinates = scratch.take<T>(static_cast<std::size_t>(shape.coordinates())).data();
    second_order = scratch.take<std::uint32_t>(static_cast<std::size_t>(shape.all_points())).data();
    segments = scratch.take<Segment<KeyOf<T>>>(splits.segments).data();
    bounds[0] = scratch.take<KeyOf<T>>(splits.bound_keys).data();
    bounds[1] = scratch.take<KeyOf<T>>(splits.split_keys).data();
    histograms = scratch.take<std::uint32_t>(splits.histograms);
    arrived = scratch.take<std::uint32_t>(splits.segments);
    tile_sides = scratch.take<std::uint64_t>(splits.tiles).data();
    first_nan = reinterpret_cast<unsigned long long*>(scratch.take<std::uint64_t>(1).data());
    report = scratch.take<KdTreeReport>(1).data();
  }
};

template <class T, class Method>
class Build {
 public:
  Build(CudaExecutor& executor, const Method& method, DeviceSpan<std::byte> scratch, const BuildJob<T>& job)
      : executor_(executor),
        stream_(executor.stream()),
        shape_(job.shape),
        options_(job.options),
        method_(method),
        crowded_(job.crowded),
        splits_(method.splits),
        buffers_(ScratchPieces(scratch), shape_, splits_),
        tree_(job.tree),
        forest_{shape_, tree_.node_data.data(), tree_.node_bounds.data(), options_.split,
                options_.leaf_size} {}

  void run(const T* points, KdTreeReport* report) {
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.first_nan, 0xFF, sizeof(*buffers_.first_nan), stream_));
    if (shape_.trees > 0) {
      take(points);
      for (int level = 0; level < splits_.levels; ++level) split_level(level);
      executor_.check_interrupt();
      finish(method_);
      CUMULUS_CUDA(cudaGetLastError());
    }
    describe_nan<T><<<1, 1, 0, stream_>>>(shape_, buffers_.first_nan, crowded_, buffers_.report);
    CUMULUS_CUDA(cudaGetLastError());
    executor_.download({reinterpret_cast<const std::byte*>(buffers_.report), sizeof(*report)},
                       {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }

 private:
  /// The points before `level` is split. The last of them lie in scratch memory, so that the tree's own
  /// arrays can be written from them; until then these serve as the other copy.
  PointCopy<T> copy(int level) const {
    if ((splits_.levels - level) % 2 == 0) return {buffers_.second_coordinates, buffers_.second_order};
    return {tree_.points.data(), reinterpret_cast<std::uint32_t*>(tree_.idx_array.data())};
  }
  std::int64_t segments(int level) const { return shape_.trees << level; }
  std::int64_t tiles(int level) const { return segment_tiles(shape_, options_, level); }
  KeyOf<T>* bounds(int level) const { return buffers_.bounds[(splits_.levels - level) % 2]; }

  void take(const T* points) {
    begin_trees<T><<<point_blocks(shape_.trees), kPointThreads, 0, stream_>>>(forest_, bounds(0));
    take_points<T><<<static_cast<unsigned>(shape_.trees * tiles(0)), kTileThreads, 0, stream_>>>(
        forest_, points, tiles(0), copy(0), bounds(0), buffers_.first_nan);
    CUMULUS_CUDA(cudaGetLastError());
    if (splits_.levels == 0) return;
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.arrived.data(), 0, buffers_.arrived.bytes(), stream_));
  }

  void split_level(int level) {
    executor_.check_interrupt();
    const auto blocks = static_cast<unsigned>(segments(level) * tiles(level));
    const unsigned segment_blocks = point_blocks(segments(level));
    const PointCopy<T> from = copy(level);
    prepare_segments<T><<<segment_blocks, kPointThreads, 0, stream_>>>(forest_, level, bounds(level),
                                                                       buffers_.segments, bounds(level + 1));
    if (options_.split == KdTreeSplit::kMidpoint) {
      count_to_middle<T><<<blocks, kTileThreads, 0, stream_>>>(shape_.all_points(), from.coordinates,
                                                               tiles(level), bounds(level), shape_.dimensions,
                                                               buffers_.segments);
      place_middle<T><<<segment_blocks, kPointThreads, 0, stream_>>>(
          forest_, level, kd_tree_capacity(shape_, options_.leaf_size, level + 1), buffers_.segments);
    }
    find_pivots(level, blocks, from);
    count_sides<T><<<blocks, kTileThreads, 0, stream_>>>(shape_.all_points(), from.coordinates, tiles(level),
                                                         buffers_.segments, buffers_.tile_sides);
    // Blocks bound their segments themselves.
    const bool bounds_follow = std::is_same_v<Method, BuildByLevels> || level + 1 < splits_.levels;
    move_points<T><<<blocks, kTileThreads, 0, stream_>>>(
        Move<T>{shape_.all_points(), shape_.dimensions, from, copy(level + 1), tiles(level),
                buffers_.segments, buffers_.tile_sides, bounds_follow ? bounds(level + 1) : nullptr});
    CUMULUS_CUDA(cudaGetLastError());
  }

  void find_pivots(int level, unsigned blocks, const PointCopy<T>& from) {
    constexpr int kPasses = selection_passes(sizeof(T));
    const auto pass_words = static_cast<std::size_t>(segments(level)) * kDigits;
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.histograms.data(), 0, kPasses * pass_words * sizeof(std::uint32_t),
                                 stream_));
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      count_digits<T><<<blocks, kTileThreads, 0, stream_>>>(
          shape_.all_points(), from.coordinates, tiles(level), buffers_.segments,
          buffers_.histograms.data() + pass * pass_words, buffers_.arrived.data());
    }
  }

  void finish(const BuildInBlocks& method) {
    const int level = splits_.levels;
    // Only ever the same for one device, so that threads that build at once set the same.
    const std::size_t most = std::min(kMaxBlockBytes, executor_.device().numbers().block_shared_bytes);
    CUMULUS_CUDA(cudaFuncSetAttribute(build_subtrees<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(most)));
    build_subtrees<T>
        <<<static_cast<unsigned>(segments(level)), static_cast<unsigned>(method.threads), method.shared_bytes,
           stream_>>>(SubtreeJob<T>{forest_, level, method.items, method.capacity, copy(level),
                                    tree_.points.data(), tree_.idx_array.data()});
  }

  void finish(const BuildByLevels& /*method*/) {
    const int level = splits_.levels;
    prepare_segments<T><<<point_blocks(segments(level)), kPointThreads, 0, stream_>>>(
        forest_, level, bounds(level), buffers_.segments, nullptr);
    if (shape_.all_points() == 0) return;
    store_points<T><<<point_blocks(shape_.all_points()), kPointThreads, 0, stream_>>>(
        shape_.all_points(), shape_.dimensions, copy(level), tree_.points.data(), tree_.idx_array.data());
  }

  CudaExecutor& executor_;
  CUstream_st* const stream_;
  const KdTreeShape shape_;
  const KdTreeOptions options_;
  const Method method_;
  const std::int64_t crowded_;
  const LevelSplits splits_;
  const Buffers<T> buffers_;
  const KdTreeArrays<T, Space::kDevice> tree_;
  const Forest<T> forest_;
};

}  // namespace

template <class T, class Method>
void build_trees(CudaExecutor& executor, const Method& method, DeviceSpan<std::byte> scratch,
                 const BuildJob<T>& job, KdTreeReport* report) {
  Build<T, Method>(executor, method, scratch, job).run(job.points, report);
}

template void build_trees(CudaExecutor&, const BuildInBlocks&, DeviceSpan<std::byte>, const BuildJob<float>&,
                          KdTreeReport*);
template void build_trees(CudaExecutor&, const BuildInBlocks&, DeviceSpan<std::byte>, const BuildJob<double>&,
                          KdTreeReport*);
template void build_trees(CudaExecutor&, const BuildByLevels&, DeviceSpan<std::byte>, const BuildJob<float>&,
                          KdTreeReport*);
template void build_trees(CudaExecutor&, const BuildByLevels&, DeviceSpan<std::byte>, const BuildJob<double>&,
                          KdTreeReport*);

}  // namespace cumulus::kd_tree

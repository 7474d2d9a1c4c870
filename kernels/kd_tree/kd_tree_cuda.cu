#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/build/blocks.cuh"
#include "kernels/kd_tree/build/levels.cuh"
#include "kernels/kd_tree/build/plan.h"
#include "kernels/kd_tree/build/scratch.h"
#include "kernels/kd_tree/build/take_points.cuh"
#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/kd_tree.h"

namespace cumulus {
namespace {

using kd_tree::BuildPlan;
using kd_tree::Forest;
using kd_tree::KeyOf;
using kd_tree::kTileThreads;
using kd_tree::PointCopy;
using kd_tree::Segment;

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

template <class T>
struct Buffers {
  T* second_coordinates;
  std::uint32_t* second_order;
  Segment<KeyOf<T>>* segments;
  KeyOf<T>* bounds[2];  // of a level, by the level's parity
  DeviceSpan<std::uint32_t> histograms;
  DeviceSpan<std::uint32_t> arrived;
  std::uint64_t* tile_sides;
  unsigned long long* first_nan;
  KdTreeReport* report;

  Buffers(CudaExecutor& executor, const KdTreeShape& shape, const KdTreeOptions& options,
          const BuildPlan& plan) {
    const kd_tree::BuildScratch scratch(sizeof(T), shape, options, plan);
    second_coordinates = executor.scratch<T>(scratch.coordinates).data();
    second_order = executor.scratch<std::uint32_t>(scratch.points).data();
    segments = executor.scratch<Segment<KeyOf<T>>>(scratch.segments).data();
    bounds[0] = executor.scratch<KeyOf<T>>(scratch.bound_keys).data();
    bounds[1] = executor.scratch<KeyOf<T>>(scratch.bound_keys).data();
    histograms = executor.scratch<std::uint32_t>(scratch.histograms);
    arrived = executor.scratch<std::uint32_t>(scratch.segments);
    tile_sides = executor.scratch<std::uint64_t>(scratch.tiles).data();
    first_nan = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
    report = executor.scratch<KdTreeReport>(1).data();
  }
};

template <class T>
class Build {
 public:
  Build(CudaExecutor& executor, const KdTreeShape& shape, const KdTreeOptions& options,
        const KdTreeArrays<T, Space::kDevice>& tree)
      : executor_(executor),
        stream_(executor.stream()),
        shape_(shape),
        options_(options),
        plan_(sizeof(T), shape, options),
        buffers_(executor, shape, options, plan_),
        tree_(tree),
        forest_{shape, tree.node_data.data(), tree.node_bounds.data(), options.split, options.leaf_size} {}

  void run(const T* points, KdTreeReport* report) {
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.first_nan, 0xFF, sizeof(*buffers_.first_nan), stream_));
    if (shape_.trees > 0) {
      take(points);
      for (int level = 0; level < plan_.together_levels; ++level) split_level(level);
      finish();
    }
    kd_tree::describe_nan<T><<<1, 1, 0, stream_>>>(shape_, buffers_.first_nan, buffers_.report);
    CUMULUS_CUDA(cudaGetLastError());
    executor_.download({reinterpret_cast<const std::byte*>(buffers_.report), sizeof(*report)},
                       {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }

 private:
  /// The points before `level` is split. The last of them lie in scratch memory, so that the tree's own
  /// arrays can be written from them; until then these serve as the other copy.
  PointCopy<T> copy(int level) const {
    if ((plan_.together_levels - level) % 2 == 0) return {buffers_.second_coordinates, buffers_.second_order};
    return {tree_.points.data(), reinterpret_cast<std::uint32_t*>(tree_.idx_array.data())};
  }
  std::int64_t segments(int level) const { return shape_.trees << level; }
  std::int64_t tiles(int level) const {
    return BuildPlan::tiles(BuildPlan::most_points(shape_, options_, level));
  }
  KeyOf<T>* bounds(int level) const { return buffers_.bounds[level % 2]; }

  void take(const T* points) {
    kd_tree::begin_trees<T><<<blocks_for(shape_.trees), kThreads, 0, stream_>>>(forest_, bounds(0));
    kd_tree::take_points<T><<<static_cast<unsigned>(shape_.trees * tiles(0)), kTileThreads, 0, stream_>>>(
        forest_, points, tiles(0), copy(0), bounds(0), buffers_.first_nan);
    CUMULUS_CUDA(cudaGetLastError());
    if (plan_.together_levels == 0) return;
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.arrived.data(), 0, buffers_.arrived.bytes(), stream_));
  }

  void split_level(int level) {
    executor_.check_interrupt();
    const auto blocks = static_cast<unsigned>(segments(level) * tiles(level));
    const unsigned segment_blocks = blocks_for(segments(level));
    const PointCopy<T> from = copy(level);
    kd_tree::prepare_segments<T><<<segment_blocks, kThreads, 0, stream_>>>(
        forest_, level, bounds(level), buffers_.segments, bounds(level + 1));
    if (options_.split == KdTreeSplit::kMidpoint) {
      kd_tree::count_to_middle<T><<<blocks, kTileThreads, 0, stream_>>>(shape_.all_points(), from.coordinates,
                                                                        tiles(level), bounds(level),
                                                                        shape_.dimensions, buffers_.segments);
      kd_tree::place_middle<T><<<segment_blocks, kThreads, 0, stream_>>>(
          forest_, level, kd_tree_capacity(shape_, options_.leaf_size, level + 1), buffers_.segments);
    }
    find_pivots(level, blocks, from);
    kd_tree::count_sides<T><<<blocks, kTileThreads, 0, stream_>>>(
        shape_.all_points(), from.coordinates, tiles(level), buffers_.segments, buffers_.tile_sides);
    const bool bounds_follow = !plan_.in_blocks || level + 1 < plan_.together_levels;
    kd_tree::move_points<T><<<blocks, kTileThreads, 0, stream_>>>(
        shape_.all_points(), shape_.dimensions, from, copy(level + 1), tiles(level), buffers_.segments,
        buffers_.tile_sides, bounds_follow ? bounds(level + 1) : nullptr);
    CUMULUS_CUDA(cudaGetLastError());
  }

  void find_pivots(int level, unsigned blocks, const PointCopy<T>& from) {
    constexpr int kPasses = kd_tree::selection_passes(sizeof(T));
    const auto pass_words = static_cast<std::size_t>(segments(level)) * kd_tree::kDigits;
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.histograms.data(), 0, kPasses * pass_words * sizeof(std::uint32_t),
                                 stream_));
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      kd_tree::count_digits<T><<<blocks, kTileThreads, 0, stream_>>>(
          shape_.all_points(), from.coordinates, tiles(level), buffers_.segments,
          buffers_.histograms.data() + pass * pass_words, buffers_.arrived.data());
    }
  }

  void finish() {
    executor_.check_interrupt();
    const int level = plan_.together_levels;
    const PointCopy<T> from = copy(level);
    if (plan_.in_blocks) {
      CUMULUS_CUDA(cudaFuncSetAttribute(kd_tree::build_subtrees<T>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(kd_tree::kMostBlockBytes)));
      kd_tree::build_subtrees<T>
          <<<static_cast<unsigned>(segments(level)), static_cast<unsigned>(plan_.block_threads),
             plan_.block_bytes, stream_>>>(forest_, level, plan_.block_items, plan_.block_capacity, from,
                                           tree_.points.data(), tree_.idx_array.data());
    } else {
      kd_tree::prepare_segments<T><<<blocks_for(segments(level)), kThreads, 0, stream_>>>(
          forest_, level, bounds(level), buffers_.segments, nullptr);
      if (shape_.all_points() > 0) {
        kd_tree::store_points<T><<<blocks_for(shape_.all_points()), kThreads, 0, stream_>>>(
            shape_.all_points(), shape_.dimensions, from, tree_.points.data(), tree_.idx_array.data());
      }
    }
    CUMULUS_CUDA(cudaGetLastError());
  }

  CudaExecutor& executor_;
  CUstream_st* const stream_;
  const KdTreeShape shape_;
  const KdTreeOptions options_;
  const BuildPlan plan_;
  const Buffers<T> buffers_;
  const KdTreeArrays<T, Space::kDevice> tree_;
  const Forest<T> forest_;
};

template <class T>
void build(CudaExecutor& executor, DeviceSpan<const T> points, const KdTreeShape& shape,
           const KdTreeOptions& options, const KdTreeArrays<T, Space::kDevice>& tree, KdTreeReport* report) {
  kd_tree::check_build(points, shape, options, tree);
  executor.bind_thread();
  executor.check_interrupt();
  Build<T>(executor, shape, options, tree).run(points.data(), report);
}

/// Thread i moves the i-th `Word` of the forest's rows.
template <class Word>
__global__ void permute_words(std::int64_t words, std::int64_t row_words, std::int64_t points,
                              const std::int64_t* idx_array, const Word* from, Word* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= words) return;
  const std::int64_t row = i / row_words;
  const std::int64_t tree = row / points;
  const std::int64_t index = idx_array[row];
  to[i] = index < 0 || index >= points ? Word{0}
                                       : from[(tree * points + index) * row_words + (i - row * row_words)];
}

template <class Word>
void permute_in(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
                DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to) {
  const auto words = static_cast<std::int64_t>(to.size() / sizeof(Word));
  const std::int64_t row_words = row_bytes / static_cast<std::int64_t>(sizeof(Word));
  permute_words<<<blocks_for(words), kThreads, 0, executor.stream()>>>(
      words, row_words, shape.points, idx_array.data(), reinterpret_cast<const Word*>(from.data()),
      reinterpret_cast<Word*>(to.data()));
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void build_kd_tree(CudaExecutor& executor, DeviceSpan<const float> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<float, Space::kDevice>& tree,
                   KdTreeReport* report) {
  build(executor, points, shape, options, tree, report);
}
void build_kd_tree(CudaExecutor& executor, DeviceSpan<const double> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<double, Space::kDevice>& tree,
                   KdTreeReport* report) {
  build(executor, points, shape, options, tree, report);
}

void permute_rows(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
                  DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to) {
  kd_tree::check_rows(shape, idx_array, from, row_bytes, to);
  executor.bind_thread();
  if (to.empty()) return;
  if (row_bytes % 8 == 0) return permute_in<std::uint64_t>(executor, shape, idx_array, from, row_bytes, to);
  if (row_bytes % 4 == 0) return permute_in<std::uint32_t>(executor, shape, idx_array, from, row_bytes, to);
  permute_in<std::uint8_t>(executor, shape, idx_array, from, row_bytes, to);
}

}  // namespace cumulus

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/kd_tree/build/take_points.cuh"
#include "kernels/kd_tree/sampled/binned_leaves.cuh"
#include "kernels/kd_tree/sampled/buckets.cuh"
#include "kernels/kd_tree/sampled/leaves.cuh"
#include "kernels/kd_tree/sampled/planes.cuh"
#include "kernels/kd_tree/sampled/sampled.h"
#include "kernels/kd_tree/sampled/scatter.cuh"
#include "kernels/kd_tree/tuning.h"
#include "kernels/primitives/launch.cuh"

namespace cumulus::kd_tree {
namespace {

constexpr int kGatherThreads = 128;
/// Threads that share a multiprocessor's registers, 64 each.
constexpr int kBinnedThreads = 1024;

struct Buffers {
  Planes planes;
  DeviceSpan<std::uint32_t> counters;
  BucketTable table;
  PointRecord* first_samples;
  Parts samples;
  Parts parts;
  Parts buckets;
  unsigned* arrived;
  unsigned long long* first_nan;
  KdTreeReport* report;

  Buffers(ScratchPieces scratch, const BuildFromSamples& plan) {
    const std::size_t part_count = std::size_t{1} << plan.first_levels;
    const std::size_t bucket_count = std::size_t{1} << plan.upper_levels();
    planes.keys = scratch.take<std::uint32_t>(bucket_count).data();
    planes.points = scratch.take<PivotPoint>(bucket_count).data();
    counters = scratch.take<std::uint32_t>(counter_words(plan.first_levels, plan.second_levels));
    table.begins = scratch.take<std::uint32_t>(bucket_count + 1).data();
    table.large = scratch.take<std::uint32_t>(bucket_count).data();
    table.uneven = scratch.take<std::uint32_t>(bucket_count).data();
    table.large_count = scratch.take<std::uint32_t>(3).data();
    table.crowded = table.large_count + 1;
    table.uneven_count = table.large_count + 2;
    first_samples = scratch.take<PointRecord>(static_cast<std::size_t>(plan.first_samples)).data();
    std::uint32_t* const bucket_counts = counters.data();
    std::uint32_t* const part_counts = bucket_counts + bucket_count;
    std::uint32_t* const sample_counts = part_counts + kCounterStride * part_count;
    arrived = sample_counts + kCounterStride * part_count;
    samples = take_parts(scratch, part_count, plan.sample_capacity, {sample_counts, kCounterStride});
    parts = take_parts(scratch, part_count, plan.part_capacity, {part_counts, kCounterStride});
    buckets = take_parts(scratch, bucket_count, plan.bucket_capacity, {bucket_counts, 1});
    first_nan = reinterpret_cast<unsigned long long*>(scratch.take<std::uint64_t>(1).data());
    report = scratch.take<KdTreeReport>(1).data();
  }

 private:
  struct Counters {
    std::uint32_t* first;
    unsigned stride;
  };
  static Parts take_parts(ScratchPieces& scratch, std::size_t count, unsigned capacity,
                          const Counters& counters_of) {
    return {scratch.take<PointRecord>(count * capacity).data(), counters_of.first, capacity,
            counters_of.stride};
  }
};

class SampledBuild {
 public:
  SampledBuild(CudaExecutor& executor, const BuildFromSamples& plan, DeviceSpan<std::byte> scratch,
               const BuildJob<float>& job)
      : executor_(executor),
        stream_(executor.stream()),
        plan_(plan),
        job_(job),
        buffers_(ScratchPieces(scratch), plan),
        forest_{job.shape, job.tree.node_data.data(), job.tree.node_bounds.data(), job.options.split,
                job.options.leaf_size} {}

  /// False where some part has no room: there is no tree then, and the report says so.
  bool run(KdTreeReport* report) {
    auto* const view = static_cast<KdTreeReport*>(executor_.device_view(report));
    if (view != nullptr) buffers_.report = view;
    clear();
    if (job_.shape.dimensions == 3) {
      fill_parts<3>();
    } else {
      fill_parts<2>();
    }
    executor_.check_interrupt();
    fill_buckets();
    if (view == nullptr) download(report);
    CudaEvent counted;
    counted.record(stream_);
    if (job_.shape.dimensions == 3) {
      build_all_leaves<3>();
    } else {
      build_all_leaves<2>();
    }
    counted.wait();
    if (report->crowded != 0) return false;
    describe_nan<float><<<1, 1, 0, stream_>>>(job_.shape, buffers_.first_nan, 0, buffers_.report);
    CUMULUS_CUDA(cudaGetLastError());
    if (view == nullptr) download(report);
    return true;
  }

 private:
  unsigned part_count() const { return 1u << plan_.first_levels; }
  unsigned bucket_count() const { return 1u << plan_.upper_levels(); }

  void download(KdTreeReport* report) {
    executor_.download({reinterpret_cast<const std::byte*>(buffers_.report), sizeof(*report)},
                       {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  }

  void clear() {
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.counters.data(), 0, buffers_.counters.bytes(), stream_));
    CUMULUS_CUDA(cudaMemsetAsync(buffers_.first_nan, 0xFF, sizeof(*buffers_.first_nan), stream_));
  }

  ScatterJob scatter_job(int above, int levels, const Parts& from, const Parts& to) const {
    const bool aligned = reinterpret_cast<std::uintptr_t>(job_.points) % sizeof(float4) == 0;
    return {job_.shape.points, aligned, buffers_.planes, above, levels, from, to, buffers_.first_nan};
  }

  template <int D>
  void fill_parts() {
    const SampleSet first(job_.shape.points, plan_.first_samples);
    launch(stream_, gather_samples<D>, {divide_up(first.count, kGatherThreads), kGatherThreads}, job_.points,
           first, buffers_.first_samples);
    const auto count = static_cast<unsigned>(plan_.first_samples);
    launch_dependent<split_samples>(
        stream_, {1, kSampleThreads, part_bytes(kSampleThreads, count, part_count())},
        PlaneJob{count, buffers_.planes, 0, plan_.first_levels}, buffers_.first_samples, count);
    const std::int64_t samples = divide_up(job_.shape.points, std::int64_t{1} << plan_.sample_shift);
    const std::int64_t sample_tiles = divide_up(samples, kScatterTile);
    launch_dependent<scatter_points<D>>(
        stream_,
        {sample_tiles + divide_up(job_.shape.points, kScatterTile), kScatterThreads, sizeof(ScatterTile)},
        scatter_job(0, plan_.first_levels, {}, buffers_.parts),
        SampleScatter{sample_tiles, plan_.sample_shift, buffers_.samples}, job_.points);
    const unsigned capacity = plan_.sample_capacity;
    launch_dependent<split_parts>(
        stream_,
        {part_count(), kSampleThreads, part_bytes(kSampleThreads, capacity, 1u << plan_.second_levels)},
        PlaneJob{capacity, buffers_.planes, plan_.first_levels, plan_.second_levels}, buffers_.samples);
  }

  void fill_buckets() {
    const dim3 tiles(static_cast<unsigned>(divide_up(plan_.part_capacity, unsigned{kScatterTile})),
                     part_count());
    launch_dependent<scatter_parts>(
        stream_, {tiles, kScatterThreads, sizeof(ScatterTile)},
        scatter_job(plan_.first_levels, plan_.second_levels, buffers_.parts, buffers_.buckets));
    launch_dependent<sum_buckets>(
        stream_, {1, kSumThreads},
        SumJob{buffers_.samples, buffers_.parts, part_count(), buffers_.buckets, bucket_count(),
               plan_.small_capacity, buffers_.table, buffers_.report});
  }

  LeafJob leaf_job(unsigned capacity, bool large) const {
    return {forest_,
            buffers_.buckets,
            buffers_.table,
            capacity,
            large,
            plan_.upper_levels(),
            plan_.bucket_levels,
            job_.tree.points.data(),
            job_.tree.idx_array.data()};
  }

  template <int D>
  void build_all_leaves() {
    if (plan_.wide_blocks) {
      build_leaves<kWideBuckets, D>();
    } else {
      build_leaves<kNarrowBuckets, D>();
    }
  }

  template <const BucketBlocks& kBlocks, int D>
  void build_leaves() {
    const std::size_t leaves = std::size_t{1} << plan_.bucket_levels;
    const std::int64_t multiprocessors = executor_.device().multiprocessors();
    constexpr int kLargeBlocks = kBinnedThreads / kBlocks.large_threads;
    const unsigned large =
        std::min(plan_.bucket_capacity, static_cast<unsigned>(kBlocks.large_threads * kBlocks.items));
    launch_dependent<build_binned<D, kBlocks.large_threads, kBlocks.items, kLargeBlocks>>(
        stream_,
        {kLargeBlocks * multiprocessors, kBlocks.large_threads,
         binned_bytes(kBlocks.large_threads, large, leaves)},
        leaf_job(large, true));
    launch_dependent<build_binned<D, kBlocks.threads, kBlocks.items, kBinnedThreads / kBlocks.threads>>(
        stream_,
        {bucket_count(), kBlocks.threads, binned_bytes(kBlocks.threads, plan_.small_capacity, leaves)},
        leaf_job(plan_.small_capacity, false));
    launch_dependent<build_buckets<kBlocks.large_threads, kBlocks.large_items>>(
        stream_,
        {4 * multiprocessors, kBlocks.large_threads,
         part_bytes(kBlocks.large_threads, plan_.bucket_capacity, leaves)},
        leaf_job(plan_.bucket_capacity, true));
    const int below = plan_.upper_levels() - kUpperLevels;
    launch_dependent<bound_upper_nodes>(
        stream_, {std::int64_t{1} << (below > 0 ? below : 0), 1 << kUpperLevels},
        UpperJob{forest_, buffers_.table, plan_.upper_levels(), buffers_.arrived});
  }

  CudaExecutor& executor_;
  CUstream_st* const stream_;
  const BuildFromSamples plan_;
  const BuildJob<float> job_;
  Buffers buffers_;
  const Forest<float> forest_;
};

}  // namespace

void build_from_samples(CudaExecutor& executor, const BuildFromSamples& plan, const BuildJob<float>& job,
                        KdTreeReport* report) {
  const auto scratch = executor.scratch<std::byte>(plan.scratch_bytes);
  if (SampledBuild(executor, plan, scratch, job).run(report)) return;
  BuildJob<float> exact = job;
  exact.crowded = 1;
  build_trees(executor, plan.exact, scratch, exact, report);
}

}  // namespace cumulus::kd_tree

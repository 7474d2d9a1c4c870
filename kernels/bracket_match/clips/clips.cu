#include <cuda_runtime.h>

#include <cuda/atomic>

#include "kernels/bracket_match/clips/boxes.h"
#include "kernels/bracket_match/intersect_clips.h"

namespace cumulus {
namespace {

using namespace bracket_match;

template <class Index>
struct Scene {
  const std::uint8_t* elements;
  const float4* boxes;
  const Index* tops;  // of the stack after each element
  float4* bounds;
  Index* links;  // of begins: an enclosing clip that their bounds do not have in them yet; of all others -1
  ClipProgress* progress;
  std::int64_t count;

  /// The clip that encloses the element, or that it ends; -1: none.
  __device__ Index clip_of(std::int64_t i) const { return i == 0 ? Index{-1} : tops[i - 1]; }
};

__device__ float4 intersection(const float4& a, const float4& b) {
  return {fmaxf(a.x, b.x), fmaxf(a.y, b.y), fminf(a.z, b.z), fminf(a.w, b.w)};
}

template <class T>
using Shared = cuda::atomic_ref<T, cuda::thread_scope_device>;

__device__ float4 load_relaxed(float4& box) {
  constexpr auto kOrder = cuda::memory_order_relaxed;
  return {Shared<float>(box.x).load(kOrder), Shared<float>(box.y).load(kOrder),
          Shared<float>(box.z).load(kOrder), Shared<float>(box.w).load(kOrder)};
}
__device__ void store_relaxed(float4& box, const float4& value) {
  constexpr auto kOrder = cuda::memory_order_relaxed;
  Shared<float>(box.x).store(value.x, kOrder);
  Shared<float>(box.y).store(value.y, kOrder);
  Shared<float>(box.z).store(value.z, kOrder);
  Shared<float>(box.w).store(value.w, kOrder);
}

__device__ std::int64_t first_element() { return std::int64_t{blockIdx.x} * kClipThreads + threadIdx.x; }
__device__ std::int64_t stride() { return std::int64_t{gridDim.x} * kClipThreads; }

/// owns: every gridDim.x * kClipThreads-th element for each thread.
/// reads: elements, boxes, tops.
/// writes: links; bounds of begins; the first wrong element (atomicMin).
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: R. Levien, "The stack monoid revisited", 2021: clips along the links of matched brackets.
template <class Index>
__global__ void __launch_bounds__(kClipThreads) begin_chains(const Scene<Index> scene) {
  for (std::int64_t i = first_element(); i < scene.count; i += stride()) {
    const std::uint8_t what = scene.elements[i];
    const bool begins = what == kBeginClip;
    scene.links[i] = begins ? scene.clip_of(i) : Index{-1};
    bool wrong = what > kEndClip;
    if (what != kEndClip) {
      const float4 box = scene.boxes[i];
      wrong = wrong || isnan(box.x) || isnan(box.y) || isnan(box.z) || isnan(box.w);
      if (begins) scene.bounds[i] = box;
    }
    if (wrong) atomicMin(&scene.progress->wrong_element, static_cast<unsigned long long>(i));
  }
}

/// A round of pointer jumping: each begin intersects its bounds with those of the clip that it links to, and
/// takes over that clip's link; the number of enclosing clips in its bounds at least doubles.
/// owns: every gridDim.x * kClipThreads-th element for each thread.
/// reads: links and bounds of begins, which other threads change in the same round. Bounds only shrink, and
///   a link is published (release) after the bounds that reach up to it: who reads the link (acquire) reads
///   bounds that reach as far or further. Further does no harm: intersection is idempotent.
/// writes: links and bounds of its begins; `unfinished` of the round.
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: list ranking by pointer jumping (J. Wyllie, 1979).
template <class Index>
__global__ void __launch_bounds__(kClipThreads) follow_links(const Scene<Index> scene, int round) {
  if (round > 0 && scene.progress->unfinished[round - 1] == 0) return;
  bool unfinished = false;
  for (std::int64_t i = first_element(); i < scene.count; i += stride()) {
    const Index link = scene.links[i];
    if (link < 0) continue;
    const Index next = Shared<Index>(scene.links[link]).load(cuda::memory_order_acquire);
    store_relaxed(scene.bounds[i],
                  intersection(load_relaxed(scene.bounds[i]), load_relaxed(scene.bounds[link])));
    Shared<Index>(scene.links[i]).store(next, cuda::memory_order_release);
    unfinished = unfinished || next >= 0;
  }
  if (unfinished)
    Shared<unsigned int>(scene.progress->unfinished[round]).store(1, cuda::memory_order_relaxed);
}

/// Elements that begin no clip get the bounds of the clip around them.
/// owns: every gridDim.x * kClipThreads-th element for each thread.
/// reads: elements, boxes, tops, bounds of begins.
/// writes: bounds of all other elements.
/// waits for: nothing of other blocks, so that it cannot deadlock; the rounds have ended.
/// source: as begin_chains.
template <class Index>
__global__ void __launch_bounds__(kClipThreads) end_chains(const Scene<Index> scene) {
  for (std::int64_t i = first_element(); i < scene.count; i += stride()) {
    const std::uint8_t what = scene.elements[i];
    if (what == kBeginClip) continue;
    const Index clip = scene.clip_of(i);
    const float4 everywhere = {-INFINITY, -INFINITY, INFINITY, INFINITY};
    const float4 outer = clip < 0 ? everywhere : scene.bounds[clip];
    scene.bounds[i] = what == kEndClip ? outer : intersection(scene.boxes[i], outer);
  }
}

struct ClipJob {
  DeviceSpan<const std::uint8_t> elements;
  DeviceSpan<const float> boxes;
  DeviceSpan<float> bounds;
  ClipReport* report;
};

/// kNoFault is -1 as a signed number.
static_assert(static_cast<std::int64_t>(kNoFault) == -1);

template <class Index>
void intersect(CudaExecutor& executor, const ClipsPlan& plan, const ClipJob& job) {
  const DeviceSpan<Index> tops = executor.scratch<Index>(job.elements.size());
  const DeviceSpan<Index> links = executor.scratch<Index>(job.elements.size());
  ClipProgress* progress = executor.scratch<ClipProgress>(1).data();
  BracketOutputs<Index, Space::kDevice> outputs;
  outputs.top = tops;
  match_brackets(executor, job.elements, clip_table(), {}, outputs, &job.report->nesting);

  const Scene<Index> scene{job.elements.data(), reinterpret_cast<const float4*>(job.boxes.data()),
                           tops.data(),         reinterpret_cast<float4*>(job.bounds.data()),
                           links.data(),        progress,
                           plan.count};
  CUMULUS_CUDA(cudaMemsetAsync(progress, 0, sizeof(ClipProgress), executor.stream()));
  CUMULUS_CUDA(
      cudaMemsetAsync(&progress->wrong_element, 0xFF, sizeof(progress->wrong_element), executor.stream()));
  if (scene.count > 0) {
    const auto blocks = static_cast<unsigned int>(plan.blocks);
    begin_chains<<<blocks, kClipThreads, 0, executor.stream()>>>(scene);
    for (int round = 0; round < plan.rounds; ++round) {
      executor.check_interrupt();
      follow_links<<<blocks, kClipThreads, 0, executor.stream()>>>(scene, round);
    }
    end_chains<<<blocks, kClipThreads, 0, executor.stream()>>>(scene);
    CUMULUS_CUDA(cudaGetLastError());
  }
  CUMULUS_CUDA(cudaMemcpyAsync(&job.report->wrong_element, &progress->wrong_element, sizeof(std::int64_t),
                               cudaMemcpyDeviceToHost, executor.stream()));
}

}  // namespace

void intersect_clips(CudaExecutor& executor, DeviceSpan<const std::uint8_t> elements,
                     DeviceSpan<const float> boxes, DeviceSpan<float> bounds, ClipReport* report) {
  check_boxes("boxes", elements.size(), boxes.size());
  check_boxes("bounds", elements.size(), bounds.size());
  const ClipsPlan plan = choose_clips(static_cast<std::int64_t>(elements.size()));
  const ClipJob job{elements, boxes, bounds, report};
  plan.wide ? intersect<std::int64_t>(executor, plan, job) : intersect<std::int32_t>(executor, plan, job);
}

}  // namespace cumulus

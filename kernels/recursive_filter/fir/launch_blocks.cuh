#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"

namespace cumulus::recursive_filter {

/// Whether kWide elements may be moved at once wherever a row has as many, or some of them and room behind.
template <int kWide, class Elements>
bool has_vectors(const Layer<Elements>& layer, std::int64_t channels) {
  const std::uintptr_t bytes =
      kWide * (layer.elements.kind == ElementKind::kHalf ? sizeof(std::uint16_t) : sizeof(float));
  return reinterpret_cast<std::uintptr_t>(layer.elements.first) % bytes == 0 && layer.row % kWide == 0 &&
         layer.image % kWide == 0 && (layer.padded || layer.extents.width * channels % kWide == 0);
}

/// Whether the stage's input, or its result, is halves.
template <class Elements>
bool is_of_halves(const Layer<Elements>& layer) {
  return layer.elements.kind == ElementKind::kHalf;
}

/// Launches a kernel of images of From, To, its stage and the first block, so many blocks an image.
template <auto kKernel, class From, class To, class Stage>
void launch_blocks(CudaExecutor& executor, const Stage& stage, std::int64_t blocks_of_image,
                   const LaunchShape& block, const Layers& layers) {
  const auto* from = reinterpret_cast<const From*>(layers.from.elements.first);
  auto* to = reinterpret_cast<To*>(layers.to.elements.first);
  const std::int64_t results =
      layers.to.extents.height * layers.to.extents.width * layers.channels * layers.images;
  const std::int64_t blocks = blocks_of_image * layers.images;
  const std::int64_t first = std::max<std::int64_t>(kFirstResults / divide_up(results, blocks), 1);
  launch_slices(executor, blocks, {.first = first}, [&](std::int64_t begin, std::int64_t end) {
    launch_dependent<kKernel>(executor.stream(), {end - begin, block.threads, block.shared_bytes}, from, to,
                              stage, begin);
  });
}

}  // namespace cumulus::recursive_filter

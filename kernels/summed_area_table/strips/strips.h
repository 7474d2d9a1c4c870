#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/summed_area_table/look_back/look_back.h"

// Tables of large images in strips of columns, from the first row to the last, which are all on the GPU at
// once (strips/build.cuh): one inclusive table of one channel.

namespace cumulus::summed_area_table {

constexpr bool has_strips(ElementPair types) {
  return types == ElementPair{ElementType::kUint8, ElementType::kUint32} ||
         types == ElementPair{ElementType::kFloat32, ElementType::kFloat32};
}

/// The strips that there are: their columns, and the blocks of each, which take its bands alternately.
struct StripForm {
  int columns;
  int blocks_per_strip;

  constexpr bool operator==(const StripForm&) const = default;
};
inline constexpr StripForm kStripForms[] = {{64, 2}, {128, 2}, {128, 1}};  // narrow images first

constexpr StripShape strip_shape(std::size_t input_bytes, const StripForm& form) {
  return strip_shape(input_bytes, form.columns / 4, form.blocks_per_strip);
}

/// Neighbouring strips that a carry scanner's lane can have.
constexpr int max_lane_strips(int blocks_per_strip) {
  return static_cast<int>(divide_up(kMaxStrips / blocks_per_strip, kStripsAtOnce));
}

/// Places for what the other block of a cluster sends. When it sends of a step, its warps have finished the
/// band carry_latency + 1 steps before. Into that went what this block sent at least a step earlier, when its
/// own warps had finished the band carry_latency + 1 steps before that.
constexpr int strip_other_ring(const StripShape& strip) {
  return strip.blocks_per_strip > 1 ? 2 * strip.carry_latency + 3 : 1;
}

/// Of a block: StripMemory (strips/traits.cuh), of sums of 4 bytes.
constexpr std::size_t shared_bytes(const StripShape& strip, std::size_t input_bytes) {
  const auto whole_words = [](std::int64_t bytes) { return divide_up(bytes, 16) * 16; };
  constexpr std::int64_t kSum = 4;
  constexpr std::int64_t kMbarrier = 8;
  const std::int64_t ring = strip_ring(strip);
  const std::int64_t other_ring = strip_other_ring(strip);
  const std::int64_t pixels = std::int64_t{strip.prefetch_distance + strip.carry_latency} * strip.rows() *
                              strip.columns() * static_cast<std::int64_t>(input_bytes);
  const std::int64_t through =
      (input_bytes == 1 ? std::int64_t{strip.carry_latency + 1} * strip.rows() : 1) * strip.row_lanes * 2;
  const std::int64_t columns = ring * (strip.warps + 1) * strip.columns() * kSum;
  const std::int64_t left = ring * strip.rows() * kSum;
  const std::int64_t others = divide_up(other_ring * (strip.columns() + 1) * kSum, 8) * 8;
  const std::int64_t barriers = (other_ring + 2 * ring) * kMbarrier;
  return static_cast<std::size_t>(whole_words(pixels + through) + whole_words(columns + left) +
                                  whole_words(others + barriers));
}

struct StripsPlan {
  StripForm form;
  std::int64_t strips;
  std::int64_t bands;

  std::int64_t blocks() const { return strips * form.blocks_per_strip; }
  static std::size_t scratch_bytes() { return 0; }
};

constexpr StripsPlan plan_strips(const BuildShape& shape, const StripForm& form) {
  const StripShape strip = strip_shape(element_bytes(shape.types.image), form);
  return {form, divide_up(shape.width, form.columns), divide_up(shape.height, strip.rows())};
}

template <class Input, class Sum>
void build_in_strips(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                     const StripsPlan& plan);

}  // namespace cumulus::summed_area_table

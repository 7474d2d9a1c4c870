#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/bracket_match.h"

namespace cumulus {

// Clips of a two-dimensional scene, in the flat form of R. Levien's Piet-GPU: a sequence of elements that
// draw, begin a clip, or end the innermost clip. What is left of an element is its box intersected with the
// boxes of all clips that enclose it. Intersecting boxes is a monoid, so that it goes along the links of
// matched brackets as well as any other (R. Levien, "The stack monoid revisited", 2021).

/// The values of an element.
inline constexpr std::uint8_t kDrawElement = 0;
inline constexpr std::uint8_t kBeginClip = 1;
inline constexpr std::uint8_t kEndClip = 2;

struct ClipReport {
  BracketReport nesting;            ///< Of begins and ends; the fault has `found` and `expected` as above.
  std::int64_t wrong_element = -1;  ///< The first that is none of the three or has a NaN in its box.
};

/// `boxes` and `bounds`: x0, y0, x1, y1 of each element, 4 * elements.size() floats, beginning at multiples
/// of 16 bytes. Boxes may be infinite; those of ends are not read. `bounds` gets the largest of the enclosing
/// x0 and y0 and the smallest of the x1 and y1: nothing is left where x1 <= x0 or y1 <= y0. An end has the
/// bounds of the clip that it ends. Where `report` has a fault or a wrong element, `bounds` holds anything.
/// Clips may be nested without limit: the work grows with the logarithm of the depth, on the CPU not at all.
///
/// Views lie in the executor's memory space and do not overlap; a size that is not right throws
/// std::invalid_argument before anything runs. Otherwise as match_brackets, with
/// intersect_clips_scratch_bytes.
void intersect_clips(CpuExecutor& executor, HostSpan<const std::uint8_t> elements,
                     HostSpan<const float> boxes, HostSpan<float> bounds, ClipReport* report);
void intersect_clips(CudaExecutor& executor, DeviceSpan<const std::uint8_t> elements,
                     DeviceSpan<const float> boxes, DeviceSpan<float> bounds, ClipReport* report);

}  // namespace cumulus

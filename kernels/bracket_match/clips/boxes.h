#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/bracket_match/intersect_clips.h"
#include "kernels/bracket_match/table.h"

// What both backends know about clips.

namespace cumulus::bracket_match {

inline BracketTable clip_table() {
  BracketTable table;
  table.role[kBeginClip] = BracketTable::Role::kOpen;
  table.role[kEndClip] = BracketTable::Role::kClose;
  table.mate[kBeginClip] = kEndClip;
  table.mate[kEndClip] = kBeginClip;
  return table;
}

inline void check_boxes(const char* name, std::size_t elements, std::size_t floats) {
  if (floats == 4 * elements) return;
  throw std::invalid_argument("intersect_clips: " + std::string(name) + " has " + std::to_string(floats) +
                              " numbers; 4 for each of " + std::to_string(elements) + " elements are right");
}

}  // namespace cumulus::bracket_match

#pragma once

#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/bracket_match/bracket_match.h"

namespace cumulus::bracket_match {

/// Throws std::invalid_argument unless `outputs` fit an input of `count` elements.
template <class Index, Space S>
void check_outputs(std::size_t count, const BracketOutputs<Index, S>& outputs) {
  const auto check = [](const char* name, std::size_t size, std::size_t right) {
    if (size == 0 || size == right) return;
    throw std::invalid_argument("match_brackets: " + std::string(name) + " has " + std::to_string(size) +
                                " elements; " + std::to_string(right) + " are right, or none");
  };
  if (count > static_cast<std::size_t>(std::numeric_limits<Index>::max())) {
    throw std::invalid_argument("match_brackets: " + std::to_string(count) +
                                " elements cannot be numbered with 32 bits; 64-bit outputs can");
  }
  check("partner", outputs.partner.size(), count);
  check("parent", outputs.parent.size(), count);
  check("depth", outputs.depth.size(), count);
  check("top", outputs.top.size(), count);
  check("maximum_depth", outputs.maximum_depth.size(), 1);
  check("unmatched", outputs.unmatched.size(), 1);
}

/// Outputs that only a walk over all elements gives.
template <class Index, Space S>
bool wants_tree(const BracketOutputs<Index, S>& outputs) {
  return !outputs.parent.empty() || !outputs.depth.empty() || !outputs.top.empty() ||
         !outputs.maximum_depth.empty();
}

}  // namespace cumulus::bracket_match

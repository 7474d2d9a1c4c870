#pragma once

#include <cstdint>

#include "cumulus/table_format.h"
#include "kernels/core/div.h"

namespace cumulus::sampling_table {

/// Bytes [begin, end) of a table that belong to no section; they are zero.
struct TableGap {
  std::uint64_t begin;
  std::uint64_t end;
};
struct TableGaps {
  TableGap gaps[7];
};

/// What section alignment leaves free after each section.
inline TableGaps table_gaps(const sampling::TableHeader& header) {
  const sampling::SectionBytes bytes = sampling::section_bytes(header);
  const std::uint64_t sections[7][2] = {{header.marginal_cdf_offset, bytes.marginal_cdf},
                                        {header.marginal_guide_offset, bytes.marginal_guide},
                                        {header.row_cdf_offset, bytes.row_cdf},
                                        {header.row_guide_offset, bytes.row_guide},
                                        {header.marginal_nodes_offset, bytes.marginal_nodes},
                                        {header.row_nodes_offset, bytes.row_nodes},
                                        {header.vertices_offset, bytes.vertices}};
  TableGaps gaps{};
  for (int i = 0; i < 7; ++i) {
    const std::uint64_t end = sections[i][0] + sections[i][1];
    const std::uint64_t aligned = divide_up(end, sampling::kSectionAlignment) * sampling::kSectionAlignment;
    gaps.gaps[i] = {end, aligned};
  }
  return gaps;
}

}  // namespace cumulus::sampling_table

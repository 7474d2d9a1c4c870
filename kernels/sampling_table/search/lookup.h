#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/format/target.h"

// Guides, trees and alias columns from lower bounds that are in memory: one thread an entry or a node, of all
// distributions at once.

namespace cumulus::sampling_table {

/// All rows of a table, or all marginals.
struct Distributions {
  sampling::TableHeader header;
  std::byte* table;
  bool marginal;

  CUMULUS_HOST_DEVICE unsigned number() const {
    return marginal ? header.layers : header.layers * header.height;
  }
  CUMULUS_HOST_DEVICE Target operator[](std::uint32_t i) const {
    return marginal ? marginal_target(header, table, i) : row_target(header, table, i);
  }
};

/// What the kernel of the lower bounds did not write: with `guides_written` it wrote guides and the nodes of
/// kRadixForest.
void write_lookup(CudaExecutor& executor, const Distributions& distributions, bool guides_written);

}  // namespace cumulus::sampling_table

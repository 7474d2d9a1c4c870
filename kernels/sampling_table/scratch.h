#pragma once

#include <cstddef>

#include "kernels/core/scratch_arena.h"
#include "kernels/sampling_table/format/records.h"

namespace cumulus {

/// Scratch memory that build_sampling_table takes, on either backend; reserve it before the call.
inline std::size_t sampling_table_scratch_bytes(const SamplingTableParams& params) {
  const sampling::TableHeader header = sampling_table_header(params);
  ScratchSize size;
  const std::size_t rows = std::size_t{header.layers} * header.height;
  size.add<sampling_table::RowMass>(rows)
      .add<sampling_table::BuildFindings>(1)
      .add<sampling_table::TileAggregate>(rows * sampling_table::tiles_of_row(header));
  if (params.needs_reduction()) {
    size.add<sampling_table::RowReduction>(static_cast<std::size_t>(params.layers * params.height))
        .add<sampling_table::WeightAdjustment>(static_cast<std::size_t>(params.layers));
  }
  return size.bytes();
}

}  // namespace cumulus

#pragma once

#include <cstddef>

#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/sampling_table/format/records.h"
#include "kernels/sampling_table/rows/tiled/tiled.h"

namespace cumulus {

/// Scratch bytes of build_sampling_table on executors of space S: exact, and the same on every GPU, since
/// among the plans of sampling_table::choose only tiled rows take any of their own, and the table's width
/// alone decides on these. Drawing takes none.
template <Space S>
std::size_t sampling_table_scratch_bytes(const SamplingTableParams& params) {
  using namespace sampling_table;
  const sampling::TableHeader header = sampling_table_header(params);
  ScratchSize size;
  size.add<RowMass>(std::size_t{header.layers} * header.height).add<BuildFindings>(1);
  if (S == Space::kDevice && is_tiled(header)) size.add<TileAggregate>(tiled_plan(header).aggregates);
  if (params.needs_reduction()) {
    size.add<RowReduction>(static_cast<std::size_t>(params.layers * params.height))
        .add<WeightAdjustment>(static_cast<std::size_t>(params.layers));
  }
  return size.bytes();
}

}  // namespace cumulus

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/core/device_numbers.h"
#include "kernels/sampling_table/draw/plans.h"
#include "kernels/sampling_table/layout.h"
#include "kernels/sampling_table/rows/block/block.h"
#include "kernels/sampling_table/rows/register_blocked/register_blocked.h"
#include "kernels/sampling_table/rows/three_pass/three_pass.h"
#include "kernels/sampling_table/rows/tiled/tiled.h"

// The only place that chooses how a GPU builds a table, and how it draws from one. Every job has a plan.

namespace cumulus::sampling_table {

/// Of a bilinear table, rows are those of its cells, never register-blocked: there is one cell more than the
/// map has columns, seldom a multiple of sixteen.
using RowPlan = std::variant<RegisterBlockedPlan, BlockPlan, ThreePassPlan, TiledPlan>;
using MarginalPlan = std::variant<RegisterBlockedPlan, BlockPlan, ThreePassPlan>;

struct BuildPlan {
  bool reduces;          ///< A reduction pass comes first.
  bool writes_vertices;  ///< Of a bilinear table.
  RowPlan rows;
  MarginalPlan marginals;
  bool early_marginals;  ///< Their kernel may begin before that of the rows has ended.
  std::size_t scratch_bytes;
};

BuildPlan choose(const SamplingTableParams& params, const DeviceNumbers& device);

/// Draws samples by one launch, fewer than 2^32.
struct DrawJob {
  const sampling::TableHeader& header;
  std::uint32_t samples;
  bool directions;  ///< Wanted besides positions and densities.
};

DrawPlan choose(const DrawJob& job, const DeviceNumbers& device);

}  // namespace cumulus::sampling_table

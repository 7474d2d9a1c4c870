#include "kernels/sampling_table/method.h"

#include <algorithm>

#include "kernels/sampling_table/scratch.h"
#include "kernels/sampling_table/tuning.h"

namespace cumulus::sampling_table {
namespace {

using sampling::Method;

/// The distributions of a table over rows, or over columns: all have as many cells and guide entries.
struct Cells {
  Method method;
  std::uint32_t count;
  std::uint32_t guide_size;
};
Cells cells_of_rows(const sampling::TableHeader& header) {
  return {header.method, header.width, header.row_guide_size};
}
Cells cells_of_marginals(const sampling::TableHeader& header) {
  return {header.method, header.height, header.marginal_guide_size};
}

/// Whether there is room for a block that register-blocks these.
bool register_blocks(const Cells& cells, const DeviceNumbers& device) {
  if (cells.count % kThreadCells != 0 || cells.count > kMaxRegisterBlockedCells) return false;
  if (cells.guide_size % 32 != 0 || cells.guide_size > 2 * kMaxRegisterBlockedCells) return false;
  const std::size_t bytes = register_blocked_bytes(register_blocked_threads(cells.count),
                                                   row_lookup_of(cells.method), cells.guide_size);
  return bytes + kSlotAlignment <= device.block_shared_bytes;
}

RegisterBlockedPlan register_blocked_plan(const Cells& cells, std::uint32_t blocks) {
  const int threads = register_blocked_threads(cells.count);
  const RowLookup lookup = row_lookup_of(cells.method);
  return {threads, lookup, blocks, register_blocked_bytes(threads, lookup, cells.guide_size)};
}

/// A block that is alone on the GPU is the sooner ready the more threads it has: `alone` counts its cells
/// four times.
int block_threads(std::uint32_t count, bool alone) {
  const std::uint32_t counted = alone ? 4 * count : count;
  if (counted <= 2048) return 128;
  if (counted <= 4096) return 256;
  return counted <= 12288 ? 512 : 1024;
}

bool fits_block(const Cells& cells, const DeviceNumbers& device) {
  return block_cell_bytes(cells.count) + kBlockStaticBytes <= device.block_shared_bytes;
}

BlockPlan block_plan(const Cells& cells, bool alone, const DeviceNumbers& device) {
  const std::size_t bytes = block_bytes(cells.count, cells.guide_size);
  const bool guides = cells.guide_size > 0 && bytes + kBlockStaticBytes <= device.block_shared_bytes;
  return {block_threads(cells.count, alone), guides, guides ? bytes : block_cell_bytes(cells.count)};
}

RowPlan choose_rows(const sampling::TableHeader& header, const DeviceNumbers& device) {
  if (is_tiled(header)) return tiled_plan(header);
  const Cells rows = cells_of_rows(header);
  if (header.interpolation == sampling::Interpolation::kConstant && register_blocks(rows, device)) {
    return register_blocked_plan(rows, header.layers * header.height);
  }
  if (fits_block(rows, device)) return block_plan(rows, false, device);
  return ThreePassPlan{};
}

MarginalPlan choose_marginals(const sampling::TableHeader& header, const DeviceNumbers& device) {
  const Cells cells = cells_of_marginals(header);
  if (register_blocks(cells, device)) return register_blocked_plan(cells, header.layers);
  if (fits_block(cells, device)) return block_plan(cells, true, device);
  return ThreePassPlan{};
}

/// Dynamic shared memory of a block that draws, at most.
std::size_t room_beside(std::size_t static_bytes, const DeviceNumbers& device) {
  if (device.block_shared_bytes <= static_bytes) return 0;
  return std::min(kMaxDrawSharedBytes, device.block_shared_bytes - static_bytes);
}

/// The same of the kernels by their threads.
struct DrawRoom {
  std::size_t ready_rows;
  std::size_t others;
};

DrawPlan choose_single_row(const sampling::TableHeader& header, const DrawRoom& room) {
  const std::size_t bytes = ready_column_bytes(header.width);
  if (header.method == Method::kAlias || bytes > room.others) return SingleRowPlan{};
  return ReadyColumnsPlan{bytes};
}

DrawPlan choose_alias_rows(std::uint32_t rows, const DrawRoom& room) {
  if (alias_row_bytes(rows) <= room.others) return AliasRowsPlan{alias_row_bytes(rows)};
  return GlobalTablePlan{};
}

DrawPlan choose_monotone_rows(const sampling::TableHeader& header, const DrawRoom& room) {
  const std::size_t ready = ready_row_bytes(header.height);
  if (ready <= room.ready_rows) return ReadyRowsPlan{ready};
  const bool lat_long = header.projection == sampling::Projection::kLatLong;
  for (const RefinedGuideShape& guide : kRefinedGuides) {
    if (guide.bands && !lat_long) continue;
    const std::size_t bytes = refined_row_bytes(header.height, guide);
    if (bytes <= room.others) return RefinedRowsPlan{guide, bytes};
  }
  return GlobalTablePlan{};
}

}  // namespace

BuildPlan choose(const SamplingTableParams& params, const DeviceNumbers& device) {
  const sampling::TableHeader header = sampling_table_header(params);
  BuildPlan plan{};
  plan.reduces = params.needs_reduction();
  plan.writes_vertices = header.interpolation == sampling::Interpolation::kBilinear;
  plan.rows = choose_rows(header, device);
  plan.marginals = choose_marginals(header, device);
  plan.early_marginals = std::holds_alternative<RegisterBlockedPlan>(plan.rows);
  plan.scratch_bytes = sampling_table_scratch_bytes<Space::kDevice>(params);
  return plan;
}

DrawPlan choose(const DrawJob& job, const DeviceNumbers& device) {
  const sampling::TableHeader& header = job.header;
  if (header.interpolation == sampling::Interpolation::kBilinear) return BilinearPlan{};
  if (job.samples < kMinSharedSamples) return GlobalTablePlan{};
  const DrawRoom room{room_beside(staged_bytes(job.directions, kReadyRowsThreads), device),
                      room_beside(staged_bytes(job.directions, kDrawThreads), device)};
  if (header.height == 1) return choose_single_row(header, room);
  if (header.method == Method::kAlias) return choose_alias_rows(header.height, room);
  return choose_monotone_rows(header, room);
}

}  // namespace cumulus::sampling_table

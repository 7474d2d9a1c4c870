#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/div.h"
#include "kernels/sampling_table/rows/arguments.h"

// Register-blocked rows: a block a row, or a marginal, sixteen neighbouring cells in the registers of each
// thread.

namespace cumulus::sampling_table {

inline constexpr std::uint32_t kThreadCells = 16;  // cells of a thread, entries of a thread
inline constexpr std::uint32_t kMaxRegisterBlockedCells = 16384;
inline constexpr std::uint32_t kSlotAlignment = 1024;  // bytes; static shared memory takes no more

/// What is built beside the lower bounds: nothing, a guide whose entries are one number or two, or guide and
/// trees.
enum class RowLookup { kNone, kCutpoints, kRanges, kTrees };

constexpr RowLookup row_lookup_of(sampling::Method method) {
  switch (method) {
    case sampling::Method::kRadixForest:
      return RowLookup::kTrees;
    case sampling::Method::kCutpointBinary:
      return RowLookup::kCutpoints;
    case sampling::Method::kBalancedForest:
      return RowLookup::kRanges;
    default:
      return RowLookup::kNone;
  }
}

struct RegisterBlockedPlan {
  int threads;
  RowLookup lookup;
  std::uint32_t blocks;
  std::size_t shared_bytes;

  bool writes_guides() const { return lookup != RowLookup::kNone; }
};

/// Of a block, for `count` cells.
constexpr int register_blocked_threads(std::uint32_t count) {
  int threads = 128;
  while (static_cast<std::uint32_t>(threads) * kThreadCells < count) threads *= 2;
  return threads;
}

/// Of a slot of 16 bits for each guide cell.
CUMULUS_HOST_DEVICE constexpr std::uint32_t slot_bytes(std::uint32_t guide_size) {
  return divide_up(2 * guide_size, kSlotAlignment) * kSlotAlignment;
}

/// Of what threads publish to their block about the edges between their cells, where slots have been: a bit
/// of each thread for each of 32 bits, and 16 bits.
CUMULUS_HOST_DEVICE constexpr std::uint32_t edge_bytes(int threads) {
  return static_cast<std::uint32_t>(threads) * (32 / 8 + 2);
}

CUMULUS_HOST_DEVICE constexpr std::uint32_t slot_or_edge_bytes(int threads, RowLookup lookup,
                                                               std::uint32_t guide_size) {
  if (lookup == RowLookup::kNone) return 0;
  const std::uint32_t bytes = slot_bytes(guide_size);
  return lookup == RowLookup::kTrees && bytes < edge_bytes(threads) ? edge_bytes(threads) : bytes;
}

/// Dynamic shared memory of a block.
constexpr std::size_t register_blocked_bytes(int threads, RowLookup lookup, std::uint32_t guide_size) {
  constexpr std::size_t kQuadBytes = 16;
  const bool trees = lookup == RowLookup::kTrees;
  const std::size_t cell_bytes = static_cast<std::size_t>(threads) * kThreadCells * sizeof(std::uint32_t);
  const std::size_t bytes = cell_bytes * (trees ? 2 : 1) + slot_or_edge_bytes(threads, lookup, guide_size) +
                            (trees ? guide_size / 8 : 0);
  return divide_up(bytes, kQuadBytes) * kQuadBytes;
}

template <class T>
void build_rows(CudaExecutor& executor, const RegisterBlockedPlan& plan, const RowsArguments<T>& arguments);
void build_marginals(CudaExecutor& executor, const RegisterBlockedPlan& plan,
                     const MarginalsArguments& arguments);

}  // namespace cumulus::sampling_table

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/host_device.h"

// Kernels with tiny tiles, many waves of blocks and contention, for the tests of kernels/primitives.

namespace cumulus::testing {

/// The affine maps x -> scale * x + offset, modulo 2^32: a monoid that does not commute.
struct Affine {
  std::uint32_t scale = 1;
  std::uint32_t offset = 0;
  bool operator==(const Affine&) const = default;
};

/// One block publishes `rounds` values in one status word of a value of 4, 8 or 12 bytes; all other blocks
/// that the device holds poll it. Returns how often a value was seen that does not belong to its status.
std::uint64_t count_torn_words(CudaExecutor& executor, int value_bytes, int rounds);

/// Calls of a kernel whose blocks publish tagged values, of 4 bytes and of 8 by turns, in memory that is not
/// cleared between them and holds what looks like the next call's tag. Returns how often a value was wrong.
std::uint64_t count_wrong_tagged_values(CudaExecutor& executor, int calls);

enum class Await { kAll, kMissing, kTogether };
/// All blocks that the device holds publish, round by round, in two places by turns, and wait for four
/// neighbours on each side. Returns how often a neighbour's value was wrong.
std::uint64_t count_wrong_neighbours(CudaExecutor& executor, int rounds, Await how);

/// At most `blocks` blocks scan sixteen lines of theirs, round by round, each round by a warp of another
/// block. Returns how often a carry was wrong.
std::uint64_t count_wrong_carries(CudaExecutor& executor, int blocks, int rounds);

/// Exclusive products of tiles of 32 values each, a warp and a block a tile.
std::vector<Affine> scan_by_warps(CudaExecutor& executor, const std::vector<Affine>& values);

/// Of 32 planes of rows x columns values: the sums of the column above each, then of the row left of each.
/// Plane by plane fastest. A block has one place, of all planes.
struct SumsBefore {
  std::vector<std::uint64_t> above, left;
};
SumsBefore look_back_along_both(CudaExecutor& executor, const std::vector<std::uint64_t>& values, int rows,
                                int columns);

/// By one warp: of eight values a lane, in turn the sums over the warp of each (lane 4 k has value k's),
/// the inclusive sums over 16 lanes and the exclusive ones of these.
struct WarpSums {
  std::vector<std::uint32_t> sums;       // 32
  std::vector<std::uint32_t> inclusive;  // 8 x 32
  std::vector<std::uint32_t> exclusive;  // likewise
};
WarpSums sum_by_warp(CudaExecutor& executor, const std::vector<std::uint32_t>& values);

/// Exclusive products by one block of 128 or 1024 threads, then the product of all.
std::vector<Affine> scan_by_block(CudaExecutor& executor, const std::vector<Affine>& values);

/// What copy_words_through_slots copies; in the place of others it puts zeros, and does not read them.
CUMULUS_HOST_DEVICE inline bool is_word_there(int word) { return word % 3 != 1; }
/// The words, a multiple of 32, after one warp has copied them asynchronously into two slots by turns and
/// another has read them there. Compute capability 9.0 and later.
std::vector<float> copy_words_through_slots(CudaExecutor& executor, const std::vector<float>& words);

/// Whether a cooperative launch of one block more than fit is refused, and one of as many is not.
bool launches_cooperatively_what_fits(CudaExecutor& executor);
/// Of `threads` host threads that launch one kernel again and again, with all shared memory of a block and
/// with little by turns: how many launches failed.
int count_refused_launches(CudaExecutor& executor, int threads, int launches);
/// The dynamic shared memory that a kernel may have after launches with so much each.
std::size_t dynamic_shared_limit_after(CudaExecutor& executor, const std::vector<std::size_t>& launched);
/// How many of `count` words a dependent kernel saw that its primary kernel, which is slow, had not written.
std::uint64_t count_words_read_too_early(CudaExecutor& executor, int count);

}  // namespace cumulus::testing

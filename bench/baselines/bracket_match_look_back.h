#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/table.h"
#include "kernels/core/cuda_executor.h"

// The single-pass form of bracket matching, to compare the default with: R. Levien, "The stack monoid
// revisited" (2021). Each partition waits for those before it (decoupled look-back), so that it needs a GPU
// to itself; a chain of links between partitions has no useful bound. Not part of the library for both
// reasons.

namespace cumulus::bench {

inline constexpr std::array<int, 4> kLookBackPartitions = {1024, 2048, 4096, 8192};

std::size_t look_back_scratch_bytes(std::int64_t count, int partition);

/// `partner` as match_brackets gives it. `partition` is one of kLookBackPartitions.
void look_back_match(CudaExecutor& executor, DeviceSpan<const std::uint8_t> text, const BracketTable& table,
                     int partition, DeviceSpan<std::int32_t> partner);

}  // namespace cumulus::bench

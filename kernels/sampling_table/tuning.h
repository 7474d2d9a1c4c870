#pragma once

#include <cstddef>
#include <cstdint>

namespace cumulus::sampling_table {

// CPU: pieces that are worth a task.
inline constexpr std::int64_t kTexelsPerTask = 16384;
inline constexpr std::int64_t kSamplesPerTask = 4096;

// CUDA. The threads of the blocks that build a row follow from its width.
inline constexpr int kReductionThreads = 256;
inline constexpr int kThreePassThreads = 512;
inline constexpr int kLookupThreads = 256;
inline constexpr int kAliasThreads = 256;
inline constexpr int kConcludeThreads = 256;
inline constexpr int kDrawThreads = 512;
inline constexpr std::uint32_t kMinSharedSamples = 1 << 20;  // from which on filling shared memory pays
inline constexpr std::size_t kMaxDrawSharedBytes =
    72 * 1024;  // so that an H200's multiprocessor holds three blocks
inline constexpr int kReadyRowsThreads = 1024;
inline constexpr int kVertexThreads = 256;

}  // namespace cumulus::sampling_table

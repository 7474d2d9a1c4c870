#pragma once

#include <cstdint>

namespace cumulus::sampling_tuning {

// CPU: pieces that are worth a task.
inline constexpr std::int64_t kTexelsPerTask = 16384;
inline constexpr std::int64_t kSamplesPerTask = 4096;

// CUDA: a row is one block's work. A wider row gets more threads, since its shared memory leaves
// room for fewer blocks.
inline constexpr int kNarrowRowThreads = 128;
inline constexpr int kRowThreads = 256;
inline constexpr int kWideRowThreads = 512;
inline constexpr std::uint32_t kNarrowRow = 1024;  // texels, at most
inline constexpr std::uint32_t kWideRow = 8192;    // texels, more than
// A wider row stays in global memory (and L1) while it is worked on, as on a GPU with less shared memory,
// of which 24576 texels take 101 KB.
inline constexpr std::uint32_t kWidestRowOnChip = 24576;

inline constexpr int kMarginalThreads = 1024;
inline constexpr int kNodeThreads = 256;
inline constexpr int kConcludeThreads = 256;
inline constexpr int kDrawThreads = 256;
inline constexpr int kVertexThreads = 256;

}  // namespace cumulus::sampling_tuning

#pragma once

#include <cstddef>

#include "kernels/core/device_numbers.h"

// The numbers of GPUs that need not be there, for the tests of choosers.

namespace cumulus::testing {

inline constexpr DeviceNumbers kH200{.architecture = 90,
                                     .multiprocessors = 132,
                                     .multiprocessor_threads = 2048,
                                     .multiprocessor_shared_bytes = 228 * 1024,
                                     .block_shared_bytes = 227 * 1024,
                                     .l2_bytes = std::size_t{50} << 20};
inline constexpr DeviceNumbers kRtx4090{.architecture = 89,
                                        .multiprocessors = 128,
                                        .multiprocessor_threads = 1536,
                                        .multiprocessor_shared_bytes = 100 * 1024,
                                        .block_shared_bytes = 99 * 1024,
                                        .l2_bytes = std::size_t{72} << 20};
inline constexpr DeviceNumbers kSmallTuring{.architecture = 75,
                                            .multiprocessors = 20,
                                            .multiprocessor_threads = 1024,
                                            .multiprocessor_shared_bytes = 64 * 1024,
                                            .block_shared_bytes = 64 * 1024,
                                            .l2_bytes = std::size_t{4} << 20};

}  // namespace cumulus::testing

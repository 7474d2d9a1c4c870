#pragma once

#include <cstddef>

namespace cumulus {

/// What of a GPU decides which method a job takes there. Choosers take it as an argument, so that they are
/// functions of their arguments alone, and tests name the choices on GPUs that are not there.
struct DeviceNumbers {
  /// Compute capability that the kernels were compiled for, of those that the GPU can run, as in 90 for 9.0.
  /// What newer ones have is left out of the code for older ones.
  int architecture = 0;
  int multiprocessors = 0;
  int multiprocessor_threads = 0;  // that a multiprocessor holds at once
  std::size_t multiprocessor_shared_bytes = 0;
  std::size_t block_shared_bytes = 0;  // the most that a block can be given
  std::size_t l2_bytes = 0;
};

}  // namespace cumulus

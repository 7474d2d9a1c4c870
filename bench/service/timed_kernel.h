#pragma once

#include <chrono>
#include <cstdint>

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace cumulus::bench {

/// Kernels that take a given time, and a number in host memory that each changes as the last that it does:
/// who reads that number all the time knows when a kernel has ended. Throws std::runtime_error.
class TimedKernels {
 public:
  TimedKernels();
  ~TimedKernels();
  TimedKernels(const TimedKernels&) = delete;
  TimedKernels& operator=(const TimedKernels&) = delete;

  /// Puts one on the stream, which sets ended() to `number`.
  void launch(CUstream_st* stream, std::chrono::microseconds time, std::uint32_t number);
  std::uint32_t ended() const;

 private:
  std::uint32_t* number_ = nullptr;  // pinned
};

}  // namespace cumulus::bench

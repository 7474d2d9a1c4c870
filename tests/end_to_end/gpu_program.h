#pragma once

#include <cstddef>
#include <string>
#include <vector>

struct CUstream_st;

// What a renderer does with memory of its GPU, for tests that are no kernels. What is said of an error is
// CUDA's name of it, and nothing where there was none.

namespace cumulus::testing {

/// That this machine has.
int gpu_count();
/// Makes the first one's context current.
std::string use_first_gpu();

std::vector<unsigned char> bytes_at(const void* data, std::size_t count);
std::string set_bytes(void* data, int value, std::size_t count);
/// By a kernel of one thread.
std::string read_byte(const void* data);
std::string write_byte(void* data);

/// A stream that waits for no other.
class GpuStream {
 public:
  GpuStream();
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;

  CUstream_st* get() const { return stream_; }
  /// Element i becomes fill_value(i). Returns before the kernel is done.
  void fill(float* values, std::size_t count);

 private:
  CUstream_st* stream_ = nullptr;
};
constexpr float fill_value(std::size_t i) { return static_cast<float>(i * 37 % 1009) / 16; }

}  // namespace cumulus::testing

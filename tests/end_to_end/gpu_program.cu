#include <cuda_runtime.h>

#include "tests/end_to_end/gpu_program.h"

namespace cumulus::testing {
namespace {

/// Owns and writes `values`, [count], an element a thread. Reads nothing and waits for nothing.
__global__ void fill_kernel(float* values, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) values[i] = static_cast<float>(i * 37 % 1009) / 16;
}

/// Owns and writes `to`, [1]. Reads `from`, [1]. Waits for nothing. Of one thread.
__global__ void copy_byte_kernel(const unsigned char* from, unsigned char* to) { *to = *from; }

std::string name_of(cudaError_t error) {
  return error == cudaSuccess ? std::string() : std::string(cudaGetErrorName(error));
}

/// Memory of a byte's array, of the program's own; never given back, as its context may be lost.
unsigned char* own_byte() {
  void* memory = nullptr;
  (void)cudaMalloc(&memory, 1);
  return static_cast<unsigned char*>(memory);
}

}  // namespace

int gpu_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string use_first_gpu() { return name_of(cudaSetDevice(0)); }

std::vector<unsigned char> bytes_at(const void* data, std::size_t count) {
  std::vector<unsigned char> bytes(count);
  if (cudaMemcpy(bytes.data(), data, count, cudaMemcpyDeviceToHost) != cudaSuccess) bytes.clear();
  return bytes;
}

std::string set_bytes(void* data, int value, std::size_t count) {
  const std::string set = name_of(cudaMemset(data, value, count));
  return set.empty() ? name_of(cudaDeviceSynchronize()) : set;
}

std::string read_byte(const void* data) {
  copy_byte_kernel<<<1, 1>>>(static_cast<const unsigned char*>(data), own_byte());
  return name_of(cudaDeviceSynchronize());
}

std::string write_byte(void* data) {
  copy_byte_kernel<<<1, 1>>>(own_byte(), static_cast<unsigned char*>(data));
  return name_of(cudaDeviceSynchronize());
}

GpuStream::GpuStream() { (void)cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
GpuStream::~GpuStream() { (void)cudaStreamDestroy(stream_); }

void GpuStream::fill(float* values, std::size_t count) {
  fill_kernel<<<static_cast<unsigned>((count + 255) / 256), 256, 0, stream_>>>(values, count);
}

}  // namespace cumulus::testing

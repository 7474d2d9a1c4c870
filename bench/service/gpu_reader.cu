#include <cuda_runtime.h>

#include <stdexcept>

#include "bench/service/gpu_reader.h"

namespace cumulus::bench {
namespace {

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

std::string use_first_gpu() {
  cudaDeviceProp properties{};
  require(cudaSetDevice(0), "cudaSetDevice");
  require(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties.name;
}

GpuReader::GpuReader(std::size_t bytes) : bytes_(bytes) {
  require(cudaMalloc(&memory_, bytes), "cudaMalloc");
}
GpuReader::~GpuReader() { (void)cudaFree(memory_); }

void GpuReader::read(const void* from) const {
  require(cudaMemcpyAsync(memory_, from, bytes_, cudaMemcpyDeviceToDevice), "reading the array");
  require(cudaDeviceSynchronize(), "reading the array");
}

std::vector<std::byte> GpuReader::content() const {
  std::vector<std::byte> bytes(bytes_);
  require(cudaMemcpy(bytes.data(), memory_, bytes_, cudaMemcpyDeviceToHost), "downloading the array");
  return bytes;
}

}  // namespace cumulus::bench

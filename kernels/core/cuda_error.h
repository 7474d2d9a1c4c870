#pragma once

#include <stdexcept>
#include <string>

namespace cumulus {

/// A CUDA call failed. `what()` names the call, the file and line, and CUDA's own words.
class CudaError : public std::runtime_error {
 public:
  CudaError(int code, const char* call, const char* file, int line);

  /// The cudaError_t.
  int code() const { return code_; }
  /// The device ran out of memory; the context is whole.
  bool out_of_memory() const;
  /// The context is lost: nothing works on the device any more in this process.
  bool sticky() const;

 private:
  int code_;
};

/// Throws CudaError unless `code` (a cudaError_t) is success.
void check_cuda(int code, const char* call, const char* file, int line);

}  // namespace cumulus

#define CUMULUS_CUDA(call) ::cumulus::check_cuda(static_cast<int>(call), #call, __FILE__, __LINE__)

#pragma once

#include "kernels/core/cuda_error.h"
#include "kernels/core/cuda_executor.h"

/// A build without CUDA has no device to make a CudaExecutor of. To satisfy the linker there, defines the
/// overload of `function`, behind its result's type, whose parameters after the executor have these types: it
/// throws. Behind `template <>` one of a template's.
#define CUMULUS_WITHOUT_CUDA(function, ...)                                                   \
  function(CudaExecutor&, __VA_ARGS__) { throw CudaError(0, #function, __FILE__, __LINE__); } \
  static_assert(true)

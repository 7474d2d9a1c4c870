#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "tests/support/result_hashes.h"

namespace cumulus::testing {

/// Host memory that ends exactly where its elements end, so that a sanitizer sees a read past them;
/// device memory from the pool, poisoned before use.
class CpuBackend {
 public:
  using Executor = CpuExecutor;
  static constexpr Space kSpace = Space::kHost;
  static constexpr const char* kName = "Cpu";
  static bool available() { return true; }

  CpuExecutor& executor() { return executor_; }

 private:
  CpuExecutor executor_;
};

class CudaBackend {
 public:
  using Executor = CudaExecutor;
  static constexpr Space kSpace = Space::kDevice;
  static constexpr const char* kName = "Cuda";
  static bool available() { return cuda_device_count() > 0; }

  CudaExecutor& executor() { return executor_; }

 private:
  CudaDevice device_{0};
  CudaExecutor executor_{device_};
};

/// An array in the backend's memory; to_host brings it back.
template <class Backend, class T>
class BackendArray {
 public:
  /// Uninitialised elements, poisoned with 0xA5 bytes.
  BackendArray(Backend& backend, std::size_t count) : BackendArray(backend, std::vector<T>(count), true) {}
  BackendArray(Backend& backend, const std::vector<T>& values) : BackendArray(backend, values, false) {}

  Span<T, Backend::kSpace> span() const { return memory_.template as<T>(count_); }
  Span<const T, Backend::kSpace> const_span() const { return span(); }

  /// Waits for the backend's work.
  std::vector<T> to_host() {
    std::vector<T> values(count_);
    backend_->executor().download({memory_.data(), count_ * sizeof(T)},
                                  {reinterpret_cast<std::byte*>(values.data()), count_ * sizeof(T)});
    backend_->executor().synchronize();
    if (result_observer != nullptr) result_observer(std::as_bytes(std::span(values)));
    return values;
  }

 private:
  BackendArray(Backend& backend, std::vector<T> values, bool poison)
      : backend_(&backend), count_(values.size()), memory_(allocate(backend, values.size() * sizeof(T))) {
    if (poison && count_ > 0) std::memset(static_cast<void*>(values.data()), 0xA5, count_ * sizeof(T));
    backend.executor().upload({reinterpret_cast<const std::byte*>(values.data()), count_ * sizeof(T)},
                              {memory_.data(), count_ * sizeof(T)});
    backend.executor().synchronize();
  }

  static Memory<Backend::kSpace> allocate(Backend& backend, std::size_t bytes) {
    if constexpr (Backend::kSpace == Space::kHost) {
      // malloc rather than the pooled allocator: a sanitizer watches its ends.
      return {static_cast<std::byte*>(std::malloc(bytes > 0 ? bytes : 1)), bytes, nullptr,
              [](void*, std::byte* block, std::size_t) { std::free(block); }};
    } else {
      return backend.executor().allocate(bytes > 0 ? bytes : 1);
    }
  }

  Backend* backend_;
  std::size_t count_;
  Memory<Backend::kSpace> memory_;
};

using Backends = ::testing::Types<CpuBackend, CudaBackend>;

struct BackendNames {
  template <class Backend>
  static std::string GetName(int) {
    return Backend::kName;
  }
};

/// Base of typed suites: TYPED_TEST_SUITE(X, Backends, BackendNames). Skips without a GPU.
template <class Backend>
class OnEveryBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Backend::available()) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    backend_ = std::make_unique<Backend>();
  }
  Backend& backend() { return *backend_; }
  typename Backend::Executor& executor() { return backend_->executor(); }

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace cumulus::testing

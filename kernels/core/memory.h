#pragma once

#include <cstddef>
#include <utility>

#include "kernels/core/views.h"

namespace cumulus {

/// Owns one block of memory in space `S`. Move-only; gives the block back when it ends.
template <Space S>
class Memory {
 public:
  /// Frees `data`; `pool` is whatever the allocator put there.
  using Free = void (*)(void* pool, std::byte* data, std::size_t bytes);

  Memory() = default;
  Memory(std::byte* data, std::size_t bytes, void* pool, Free free)
      : data_(data), bytes_(bytes), pool_(pool), free_(free) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    Memory(std::move(other)).swap(*this);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (data_ != nullptr) free_(pool_, data_, bytes_);
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  /// The first `count` elements, as `T`.
  template <class T>
  Span<T, S> as(std::size_t count) const {
    return {reinterpret_cast<T*>(data_), count};
  }

 private:
  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(pool_, other.pool_);
    std::swap(free_, other.free_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  void* pool_ = nullptr;
  Free free_ = nullptr;
};

using HostMemory = Memory<Space::kHost>;
using DeviceMemory = Memory<Space::kDevice>;

/// Every block begins at a multiple of this, in scratch memory and in buffers, on both backends.
inline constexpr std::size_t kBlockAlignment = 256;

constexpr std::size_t align_block(std::size_t bytes) {
  return (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
}

/// Host memory, aligned to kBlockAlignment, from an allocator that keeps large blocks for reuse.
/// Throws std::bad_alloc.
HostMemory allocate_host(std::size_t bytes);

}  // namespace cumulus

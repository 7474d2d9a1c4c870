#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/core/slice.h"
#include "kernels/core/views.h"

namespace cumulus::testing {

/// Memory that nobody has written to. Its regions are of 2 MiB, as large pages would be.
class FreshMemory {
 public:
  explicit FreshMemory(std::size_t bytes) : bytes_(bytes), mapped_(bytes + kRegionBytes) {
    memory_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for a test");
    ::madvise(memory_, mapped_, MADV_NOHUGEPAGE);  // pages tell apart what was written to
    const auto address = reinterpret_cast<std::uintptr_t>(memory_);
    begin_ = static_cast<std::byte*>(memory_) + (kRegionBytes - address % kRegionBytes);
  }
  ~FreshMemory() { ::munmap(memory_, mapped_); }
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;

  std::byte* data() const { return begin_; }
  /// Regions that have been written to.
  int written_regions() const {
    std::vector<unsigned char> pages(bytes_ / kPageBytes);
    if (::mincore(begin_, bytes_, pages.data()) != 0) throw std::runtime_error("mincore has failed");
    int written = 0;
    for (std::size_t first = 0; first < pages.size(); first += kRegionPages) {
      const std::size_t end = std::min(first + kRegionPages, pages.size());
      written += std::any_of(pages.begin() + static_cast<std::ptrdiff_t>(first),
                             pages.begin() + static_cast<std::ptrdiff_t>(end),
                             [](unsigned char page) { return page != 0; });
    }
    return written;
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kRegionPages = 512;
  static constexpr std::size_t kRegionBytes = kRegionPages * kPageBytes;

  std::size_t bytes_;
  std::size_t mapped_;
  void* memory_;
  std::byte* begin_;
};

/// Wants each slice to do as little as it can, and counts the regions that the slices begin to write to.
class RegionTurns final : public Turns {
 public:
  explicit RegionTurns(const FreshMemory& memory) : memory_(memory) {}

  void yield() override {
    const int written = memory_.written_regions();
    most_ = std::max(most_, written - written_);
    written_ = written;
    asked_ = false;
  }
  bool wanted() const override { return std::exchange(asked_, true); }
  /// By one slice; the last one does not count.
  int most_regions() const { return most_; }

 private:
  const FreshMemory& memory_;
  int written_ = 0;
  int most_ = 0;
  mutable bool asked_ = false;  // of a call on one thread
};

}  // namespace cumulus::testing

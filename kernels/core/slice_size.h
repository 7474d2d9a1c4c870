#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace cumulus {

/// How many pieces of a loop make a slice of about `length`, learnt from the slices before.
class SliceSize {
 public:
  SliceSize(std::chrono::milliseconds length, std::int64_t first, std::int64_t least)
      : length_(length), size_(first), least_(least) {}

  std::int64_t pieces() const { return size_; }
  /// A slice of so many pieces has taken so long.
  void took(std::int64_t pieces, std::chrono::duration<double> time) {
    constexpr double kMaxGrowth = 4;
    const double share = std::chrono::duration<double>(length_) /
                         std::max<std::chrono::duration<double>>(time, std::chrono::nanoseconds(1));
    size_ = std::max(least_,
                     static_cast<std::int64_t>(static_cast<double>(pieces) * std::min(share, kMaxGrowth)));
  }

 private:
  const std::chrono::milliseconds length_;
  std::int64_t size_;
  const std::int64_t least_;
};

}  // namespace cumulus

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/primitives/vector_width.h"
#include "kernels/recursive_filter/cpu/lanes.h"

namespace cumulus::recursive_filter {

/// Taps that are added up at once: parts of sums of many, so that floats err by the root of their number.
inline std::int64_t part_of(std::int64_t taps) {
  return std::max<std::int64_t>(64, static_cast<std::int64_t>(std::sqrt(static_cast<double>(taps))));
}

/// sums[i] = the sum over tap t of weights[t] sources[t][i].
template <class Real>
class WeightedSums {
 public:
  explicit WeightedSums(std::int64_t taps) : part_(part_of(taps)) {
    sources.resize(static_cast<std::size_t>(taps));
    weights.resize(static_cast<std::size_t>(taps));
  }

  std::vector<const Real*> sources;
  std::vector<Real> weights;
  std::int64_t taps() const { return static_cast<std::int64_t>(sources.size()); }

  void compute(std::int64_t count, Real* sums) const {
    with_widest_vectors([&]<class Vectors>() { Vectors::call([&] { compute_with<Vectors>(count, sums); }); });
  }

 private:
  template <class Vectors>
  [[gnu::always_inline]] void compute_with(std::int64_t count, Real* sums) const {
    using Value = Pack<Real, Vectors::kBytes>;
    constexpr int kPacks = Vectors::kBytes / 8;  // all sums of a block in registers
    constexpr std::int64_t kBlock = std::int64_t{kPacks} * Value::kCount;
    std::int64_t at = 0;
    for (; at + kBlock <= count; at += kBlock) block<Value, kPacks>(at, sums);
    for (; at + Value::kCount <= count; at += Value::kCount) block<Value, 1>(at, sums);
    for (; at < count; ++at) sums[at] = single(at);
  }

  template <class Value, int kPacks>
  [[gnu::always_inline]] void block(std::int64_t at, Real* sums) const {
    const std::int64_t taps = this->taps();
    Value total[kPacks];
    for (std::int64_t first = 0; first < taps; first += part_) {
      const std::int64_t end = std::min(first + part_, taps);
      Value sum[kPacks];
      for (std::int64_t tap = first; tap < end; ++tap) {
        const Real weight = weights[static_cast<std::size_t>(tap)];
        const Real* from = sources[static_cast<std::size_t>(tap)] + at;
        for (int p = 0; p < kPacks; ++p) sum[p] += weight * Value::load(from + p * Value::kCount);
      }
      for (int p = 0; p < kPacks; ++p) total[p] += sum[p];
    }
    for (int p = 0; p < kPacks; ++p) total[p].store(sums + at + p * Value::kCount);
  }

  [[gnu::always_inline]] Real single(std::int64_t at) const {
    const std::int64_t taps = this->taps();
    Real total = 0;
    for (std::int64_t first = 0; first < taps; first += part_) {
      const std::int64_t end = std::min(first + part_, taps);
      Real sum = 0;
      for (std::int64_t tap = first; tap < end; ++tap) {
        sum += weights[static_cast<std::size_t>(tap)] * sources[static_cast<std::size_t>(tap)][at];
      }
      total += sum;
    }
    return total;
  }

  std::int64_t part_;
};

}  // namespace cumulus::recursive_filter

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/primitives/vector_width.h"
#include "kernels/recursive_filter/cpu/lanes.h"

namespace cumulus::recursive_filter {

/// Sums of weighted sources, of several results at once, which share what they load.
///
/// Sums of many taps are added up in parts, so that floats err by the root of their number.
template <class Real>
class WeightedSums {
 public:
  /// At once, at most.
  static constexpr int kResults = 4;
  /// sums[i] = the sum over tap t of weights[t] sources[first + t][i].
  struct Result {
    std::int64_t first = 0;
    const Real* weights = nullptr;
    Real* sums = nullptr;
  };

  WeightedSums(std::int64_t taps, std::int64_t source_count)
      : sources(static_cast<std::size_t>(source_count)),
        taps_(taps),
        part_(std::max(kMinPart, static_cast<std::int64_t>(std::sqrt(static_cast<double>(taps))))) {}

  std::vector<const Real*> sources;  // null: zeros

  /// Numbers 0..count - 1 of each of kResults results or fewer, whose `first` do not fall.
  void compute(std::span<const Result> results, std::int64_t count) const {
    with_widest_vectors([&]<class Vectors>() {
      Vectors::call([&] {
        if (results.size() == kResults) return add_up<Vectors, kResults>(results.data(), count);
        for (const Result& result : results) add_up<Vectors, 1>(&result, count);
      });
    });
  }

 private:
  /// More than passes of small steps reach, of all results together: their sums do not depend on which
  /// results are computed at once.
  static constexpr std::int64_t kMinPart = 96;

  template <class Vectors, int kCount>
  [[gnu::always_inline]] void add_up(const Result* results, std::int64_t count) const {
    using Value = Pack<Real, Vectors::kBytes>;
    // All sums in registers: 16 of 32 that there are of 64 bytes, 8 of 16 of fewer.
    constexpr int kAll = Vectors::kBytes == 64 ? 16 : Vectors::kBytes / 8;
    constexpr int kPacks = std::clamp(kAll / kCount, 1, 8);
    std::int64_t at = 0;
    for (; at + kPacks * Value::kCount <= count; at += kPacks * Value::kCount) {
      block<Value, kCount, kPacks>(results, at);
    }
    for (; at + Value::kCount <= count; at += Value::kCount) block<Value, kCount, 1>(results, at);
    for (; at < count; ++at) {
      for (int k = 0; k < kCount; ++k) results[k].sums[at] = single(results[k], at);
    }
  }

  template <class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void block(const Result* results, std::int64_t at) const {
    const std::int64_t end = results[kCount - 1].first + taps_;
    for (std::int64_t first = results[0].first; first < end; first += part_) {
      Value sums[kCount][kPacks];
      add_part<Value>(results, {first, std::min(first + part_, end)}, at, sums);
      for (int k = 0; k < kCount; ++k) {
        for (int p = 0; p < kPacks; ++p) {
          Real* to = results[k].sums + at + p * Value::kCount;
          if (first > results[0].first) sums[k][p] += Value::load(to);
          sums[k][p].store(to);
        }
      }
    }
  }

  struct Part {
    std::int64_t begin, end;  // sources
  };

  template <class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void add_part(const Result* results, const Part& part, std::int64_t at,
                                       Value (&sums)[kCount][kPacks]) const {
    const auto add = [&](std::int64_t source, auto reaches) {
      const Real* from = sources[static_cast<std::size_t>(source)];
      if (from == nullptr) return;
      Value values[kPacks];
      for (int p = 0; p < kPacks; ++p) values[p] = Value::load(from + at + p * Value::kCount);
      for (int k = 0; k < kCount; ++k) {
        const std::int64_t tap = source - results[k].first;
        if (!reaches(tap)) continue;
        for (int p = 0; p < kPacks; ++p) sums[k][p] += results[k].weights[tap] * values[p];
      }
    };
    const auto some = [&](std::int64_t tap) { return tap >= 0 && tap < taps_; };
    const auto all = [](std::int64_t) { return true; };
    // Sources that all results reach, between those that some do.
    const std::int64_t begin = std::clamp(results[kCount - 1].first, part.begin, part.end);
    const std::int64_t end = std::clamp(results[0].first + taps_, begin, part.end);
    for (std::int64_t source = part.begin; source < begin; ++source) add(source, some);
    for (std::int64_t source = begin; source < end; ++source) add(source, all);
    for (std::int64_t source = end; source < part.end; ++source) add(source, some);
  }

  [[gnu::always_inline]] Real single(const Result& result, std::int64_t at) const {
    Real total = 0;
    for (std::int64_t first = 0; first < taps_; first += part_) {
      Real sum = 0;
      for (std::int64_t tap = first; tap < std::min(first + part_, taps_); ++tap) {
        const Real* from = sources[static_cast<std::size_t>(result.first + tap)];
        if (from != nullptr) sum += result.weights[tap] * from[at];
      }
      total += sum;
    }
    return total;
  }

  std::int64_t taps_;
  std::int64_t part_;
};

}  // namespace cumulus::recursive_filter

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/core/vector_width.h"
#include "kernels/recursive_filter/cpu/lanes.h"

namespace cumulus::recursive_filter {

/// Sums of weighted sources, of several results at once, which share what they load.
///
/// Sums of many taps are added up in parts, so that floats err by the root of their number.
template <class Real>
class WeightedSums {
 public:
  /// That share what they load, at most.
  static constexpr int kResults = 8;
  /// sums[i] = the sum over tap t of weights[t] sources[first + t][i].
  struct Result {
    std::int64_t first = 0;
    const Real* weights = nullptr;
    Real* sums = nullptr;
  };

  WeightedSums(std::int64_t taps, std::int64_t source_count)
      : sources(static_cast<std::size_t>(source_count)),
        weights_(static_cast<std::size_t>(source_count * kResults)),
        taps_(taps),
        part_(std::max(kMinPart, static_cast<std::int64_t>(std::sqrt(static_cast<double>(taps))))) {}

  std::vector<const Real*> sources;  // null: zeros

  /// Numbers 0..count - 1 of each of the results, whose `first` do not fall.
  void compute(std::span<const Result> results, std::int64_t count) {
    with_widest_vectors([&]<class Vectors>() {
      Vectors::call([&] {
        std::span<const Result> rest = results;
        if constexpr (Vectors::kBytes == 64) rest = add_up_groups<Vectors, kResults>(rest, count);
        rest = add_up_groups<Vectors, kFewResults>(rest, count);
        for (const Result& result : rest) add_up<Vectors, 1>(&result, count);
      });
    });
  }

  /// Whether all sums so far are. One is not where a source within its reach is NaN or infinite.
  bool all_finite() const { return finite_; }

 private:
  /// At once by vectors of fewer registers.
  static constexpr int kFewResults = 4;
  /// More than passes of small steps reach.
  static constexpr std::int64_t kMinPart = 96;

  /// kCount at a time that have sources in common, of one part; gives those that are left.
  template <class Vectors, int kCount>
  [[gnu::always_inline]] std::span<const Result> add_up_groups(std::span<const Result> results,
                                                               std::int64_t count) {
    if (taps_ > part_) return results;
    for (; results.size() >= kCount && results[kCount - 1].first < results[0].first + taps_;
         results = results.subspan(kCount)) {
      add_up<Vectors, kCount>(results.data(), count);
    }
    return results;
  }

  template <class Vectors, int kCount>
  [[gnu::always_inline]] void add_up(const Result* results, std::int64_t count) {
    using Value = Pack<Real, Vectors::kBytes>;
    for (int k = 0; k < kCount; ++k) {
      Real* weights = weights_.data() + results[k].first * kCount + k;
      for (std::int64_t tap = 0; tap < taps_; ++tap) weights[tap * kCount] = results[k].weights[tap];
    }
    // All sums in registers: 24 of 32 that there are of 64 bytes, 8 of 16 of fewer.
    constexpr int kAll = Vectors::kBytes == 64 ? 24 : Vectors::kBytes / 8;
    constexpr int kPacks = std::clamp(kAll / kCount, 1, 8);
    Value zeros;
    std::int64_t at = 0;
    for (; at + kPacks * Value::kCount <= count; at += kPacks * Value::kCount) {
      block<Value, kCount, kPacks>(results, at, zeros);
    }
    for (; at + Value::kCount <= count; at += Value::kCount) block<Value, kCount, 1>(results, at, zeros);
    Real lanes[Value::kCount];
    zeros.store(lanes);
    for (const Real zero : lanes) finite_ = finite_ && zero == 0;
    for (; at < count; ++at) {
      for (int k = 0; k < kCount; ++k) {
        const Real sum = single(results[k], at);
        finite_ = finite_ && std::isfinite(sum);
        results[k].sums[at] = sum;
      }
    }
  }

  /// Adds 0 times each sum to `zeros`: a lane is NaN after one that is not finite.
  template <class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void block(const Result* results, std::int64_t at, Value& zeros) const {
    Value sums[kCount][kPacks];
    add_sources<Value>(results, at, std::make_integer_sequence<int, kCount - 1>(), sums);
    Value all;
    for (int k = 0; k < kCount; ++k) {
      for (int p = 0; p < kPacks; ++p) {
        sums[k][p].store(results[k].sums + at + p * Value::kCount);
        all += sums[k][p];
      }
    }
    zeros += Real{0} * all;
  }

  /// First the sources that the first result alone reaches, then those that the second does too, and so on;
  /// those that all reach; those that all but the first do, and so on.
  template <class Value, int kCount, int kPacks, int... k>
  [[gnu::always_inline]] void add_sources(const Result* results, std::int64_t at,
                                          std::integer_sequence<int, k...>,
                                          Value (&sums)[kCount][kPacks]) const {
    (add_range<0, k + 1>({results[k].first, results[k + 1].first}, at, sums), ...);
    const Range all{results[kCount - 1].first, results[0].first + taps_};
    if constexpr (kCount == 1) {
      add_parts(all, at, sums);
    } else {
      add_range<0, kCount>(all, at, sums);
    }
    (add_range<k + 1, kCount>({results[k].first + taps_, results[k + 1].first + taps_}, at, sums), ...);
  }

  struct Range {
    std::int64_t begin, end;  // sources
  };

  template <class Value, int kPacks>
  [[gnu::always_inline]] void add_parts(const Range& range, std::int64_t at, Value (&sums)[1][kPacks]) const {
    if (taps_ <= part_) return add_range<0, 1>(range, at, sums);
    for (std::int64_t begin = range.begin; begin < range.end; begin += part_) {
      Value of_part[1][kPacks];
      add_range<0, 1>({begin, std::min(begin + part_, range.end)}, at, of_part);
      for (int p = 0; p < kPacks; ++p) sums[0][p] += of_part[0][p];
    }
  }

  /// To results kBegin..kEnd - 1.
  template <int kBegin, int kEnd, class Value, int kCount, int kPacks>
  [[gnu::always_inline]] void add_range(const Range& range, std::int64_t at,
                                        Value (&sums)[kCount][kPacks]) const {
    for (std::int64_t source = range.begin; source < range.end; ++source) {
      const Real* from = sources[static_cast<std::size_t>(source)];
      if (from == nullptr) continue;
      Value values[kPacks];
      for (int p = 0; p < kPacks; ++p) values[p] = Value::load(from + at + p * Value::kCount);
      for (int k = kBegin; k < kEnd; ++k) {
        for (int p = 0; p < kPacks; ++p)
          sums[k][p] += weights_[static_cast<std::size_t>(source * kCount + k)] * values[p];
      }
    }
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

  std::vector<Real> weights_;  // of each source, for each of the results that are added up at once
  std::int64_t taps_;
  std::int64_t part_;
  bool finite_ = true;
};

}  // namespace cumulus::recursive_filter

#pragma once

#include <cstdint>
#include <functional>

#include "kernels/sampling_table/cpu/bounds.h"
#include "kernels/sampling_table/cpu/long_loop.h"
#include "kernels/sampling_table/cpu/lookup.h"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/weights/weights.h"

namespace cumulus::sampling_table {

/// What a row of a table is built from.
template <class T>
struct RowWeights {
  const T* texels;
  std::int64_t channels;
  WeightRule rule;
  WeightAdjustment adjustment;
};

/// The build of one row, which can go on in another slice.
template <class T>
class RowBuild {
 public:
  RowBuild(const RowWeights<T>& weights, const Target& target)
      : weights_(weights),
        target_(target),
        stage_(target.count),
        tally_(target.count),
        bounds_(target.count) {}

  /// Goes on from where it was, to the end or until `slice`, if there is one, is over. Whether it has come to
  /// the end.
  bool run(const Slice* slice) { return write_bounds(slice) && write_lookup_of(slice); }

  /// Of the whole row, once it is built.
  const RowExtremes& extremes() const { return extremes_; }
  const Tally& tally() const { return all_; }
  std::uint32_t exponent() const { return row_exponent(extremes_.largest, target_.count); }

 private:
  bool write_bounds(const Slice* slice) {
    const auto stage = [this](std::int64_t first, std::int64_t end) {
      extremes_.add(stage_weights(weights_.texels + first * weights_.channels, weights_.channels,
                                  static_cast<std::uint32_t>(end - first), weights_.rule, weights_.adjustment,
                                  target_.lower + first));
    };
    if (!stage_.run(slice, stage)) return false;
    const IntegerWeight weight(exponent());
    const auto tally = [&](std::int64_t first, std::int64_t end) {
      tally_masses(target_.lower + first, static_cast<std::uint32_t>(end - first), weight, all_);
    };
    const auto bounds = [&](std::int64_t first, std::int64_t end) {
      write_row_bounds(target_.lower + first, static_cast<std::uint32_t>(end - first), weight, all_, before_);
    };
    return tally_.run(slice, tally) && bounds_.run(slice, bounds);
  }

  bool write_lookup_of(const Slice* slice) {
    if (slice == nullptr) {
      write_lookup(target_);
      return true;
    }
    if (!lookup_) lookup_ = long_lookup(target_);
    return lookup_(*slice);
  }

  RowWeights<T> weights_;
  Target target_;
  LongLoop stage_, tally_, bounds_;
  RowExtremes extremes_;
  Tally all_, before_;
  std::function<bool(const Slice&)> lookup_;
};

}  // namespace cumulus::sampling_table

#pragma once

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/math/arithmetic.h"

namespace cumulus::kd_tree {

/// Channels are summed in groups of so many: their sums stay in registers.
inline constexpr int kSummedChannels = 4;

/// Where a job's payload and sums lie.
template <class T>
struct SummedRows {
  const T* rows;
  T* sums;
  std::int64_t points;  // of each tree
  std::int64_t channels;

  template <Space S>
  static SummedRows of(const KdTreeShape& shape, const PayloadSums<T, S>& payload) {
    return {payload.rows.data(), payload.sums.data(), shape.points, payload.channels};
  }
  std::int64_t groups() const { return divide_up(channels, std::int64_t{kSummedChannels}); }
};

/// The sums of one query, of one group of channels.
template <class T>
class RowSum {
 public:
  CUMULUS_KD_TREE_INLINE RowSum(const SummedRows<T>& payload, std::int64_t tree, std::int64_t group)
      : rows_(payload.rows + tree * payload.points * payload.channels + group * kSummedChannels),
        points_(payload.points),
        pitch_(payload.channels),
        first_(group * kSummedChannels) {}

  /// The row of the point of that index; an idx_array that came from anywhere may name one that there is not.
  CUMULUS_KD_TREE_INLINE void add(std::int64_t index) {
    if (index < 0 || index >= points_) return;
    const T* row = rows_ + index * pitch_;
    for (int i = 0; i < kSummedChannels; ++i) {
      if (i < pitch_ - first_) sums_[i] += static_cast<double>(row[i]);
    }
  }
  /// To the query's row of all sums.
  CUMULUS_KD_TREE_INLINE void store(T* sums, std::int64_t query) const {
    T* row = sums + query * pitch_ + first_;
    for (int i = 0; i < kSummedChannels; ++i) {
      if (i < pitch_ - first_) row[i] = static_cast<T>(sums_[i]);
    }
  }

 private:
  const T* const rows_;
  const std::int64_t points_;
  const std::int64_t pitch_;
  const std::int64_t first_;
  double sums_[kSummedChannels] = {};
};

}  // namespace cumulus::kd_tree

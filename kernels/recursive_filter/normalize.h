#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/float16.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/images.h"

// Normalized convolution (H. Knutsson and C.-F. Westin, "Normalized and differential convolution", 1993): a
// filtered image over what the same filter makes of the certainty, which is 1 inside the image and 0 beyond
// it: the mean over those of the filter's weights that fall inside. The filter is separable, and so is that.

namespace cumulus {

/// What a filter with FilterBoundary::kZero makes of a line of ones: `ends`, half of them of the line's first
/// pixels (the odd one too), half of its last; of all pixels between 1. None: 1 everywhere.
struct FilteredCertainty {
  std::vector<double> ends;

  double smallest() const;
};

/// Of a line of `length` pixels, whatever boundary the filter names. Time and memory are bounded by the
/// filter's reach. Of filters whose weights sum to 1.
FilteredCertainty filtered_certainty(const AxisFilter& filter, std::int64_t length);
FilteredCertainty filtered_certainty(const FirAxis& axis, std::int64_t length);

struct FilteredCertainties {
  FilteredCertainty y;
  FilteredCertainty x;

  double smallest() const { return y.smallest() * x.smallest(); }
};

/// normalized = images / (certainties.y of the row times certainties.x of the column), in double where From
/// is, otherwise in float, rounded once where To is Float16. From and To: the same of float and double, or
/// Float16 and float, or the other way round. Both are dense and may be the same memory. Throws
/// std::invalid_argument for views of other extents; otherwise as apply_recursive_filter. Takes exactly
/// normalize_scratch_bytes.
template <class From, class To>
void normalize(CpuExecutor& executor, const FilterImages<const From, Space::kHost>& images,
               const FilteredCertainties& certainties, const FilterImages<To, Space::kHost>& normalized);
template <class From, class To>
void normalize(CudaExecutor& executor, const FilterImages<const From, Space::kDevice>& images,
               const FilteredCertainties& certainties, const FilterImages<To, Space::kDevice>& normalized);

template <class From>
std::size_t normalize_scratch_bytes(const FilteredCertainties& certainties) {
  using Real = std::conditional_t<std::is_same_v<From, double>, double, float>;
  ScratchSize size;
  size.add<Real>(certainties.y.ends.size());
  size.add<Real>(certainties.x.ends.size());
  return size.bytes();
}

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// What the pixels of a line are multiplied by.
template <class Real>
struct LineFactors {
  const Real* ends;
  std::int64_t first;   // pixels at the line's beginning that have one
  std::int64_t last;    // the first pixel of its end that has one
  std::int64_t offset;  // of that one's in `ends`, from its place

  CUMULUS_HOST_DEVICE Real at(std::int64_t pixel) const {
    if (pixel < first) return ends[pixel];
    return pixel < last ? Real{1} : ends[pixel - offset];
  }
};

/// The factors in the executor's scratch memory.
template <class Real, class Executor>
LineFactors<Real> line_factors(Executor& executor, const FilteredCertainty& certainty, std::int64_t length) {
  std::vector<Real> factors;
  for (const double share : certainty.ends) factors.push_back(static_cast<Real>(1 / share));
  const auto ends = executor.template scratch<Real>(factors.size());
  const auto bytes = factors.size() * sizeof(Real);
  executor.upload({reinterpret_cast<const std::byte*>(factors.data()), bytes},
                  {reinterpret_cast<std::byte*>(ends.data()), bytes});
  const auto count = static_cast<std::int64_t>(factors.size());
  return {ends.data(), count - count / 2, length - count / 2, length - count};
}

}  // namespace cumulus::recursive_filter

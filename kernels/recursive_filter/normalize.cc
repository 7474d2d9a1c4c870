#include "kernels/recursive_filter/normalize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/core/without_cuda.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus {

using namespace recursive_filter;

namespace {

/// A line in memory, for filter_line.
struct LineInPlace {
  std::vector<double>& pixels;

  template <class F>
  void read_forward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = first; i < end; ++i) f(pixels[static_cast<std::size_t>(i)]);
  }
  template <class F>
  void read_backward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = end - 1; i >= first; --i) f(pixels[static_cast<std::size_t>(i)]);
  }
  template <class F>
  void filter_forward(const F& f) const {
    std::for_each(pixels.begin(), pixels.end(), f);
  }
  template <class F>
  void filter_backward(const F& f) const {
    std::for_each(pixels.rbegin(), pixels.rend(), f);
  }
};

std::vector<double> filtered_by(const FirPass& pass, const std::vector<double>& line) {
  std::vector<double> filtered(static_cast<std::size_t>(pass.out_length));
  for (std::int64_t i = 0; i < pass.out_length; ++i) {
    const double* weights = pass.of_phase(i % pass.phases);
    const std::int64_t first = i / pass.phases * pass.advance + pass.first;
    double& sum = filtered[static_cast<std::size_t>(i)];
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      const std::int64_t at = source_pixel(first + tap, pass.in_length, pass.boundary);
      if (at >= 0) sum += weights[tap] * line[static_cast<std::size_t>(at)];
    }
  }
  return filtered;
}

/// Where a filter's weights are but for 1e-13 of them.
std::int64_t reach_of(AxisFilter filter, std::int64_t length, int order) {
  filter.boundary = FilterBoundary::kRepeat;  // of others no plan knows its decay length
  return plan_axis(filter, length, order, Precision::kDouble).decay_length;
}

}  // namespace

double FilteredCertainty::smallest() const {
  return ends.empty() ? 1 : std::min(1.0, *std::min_element(ends.begin(), ends.end()));
}

FilteredCertainty filtered_certainty(const AxisFilter& filter, std::int64_t length) {
  RecursiveFilter along_x;
  along_x.x = filter;
  along_x.x.boundary = FilterBoundary::kZero;
  const int order = kernel_order(along_x);
  const std::int64_t ends = std::min(length, 2 * reach_of(filter, length, order));
  std::vector<double> line(static_cast<std::size_t>(ends), 1.0);
  const AxisPlan plan = plan_axis(along_x.x, ends, order, Precision::kDouble);
  with_order(order, [&]<int Order>() {
    LineInPlace in_place{line};
    filter_line<double>(LinePlan<Order, double>(plan), in_place);
  });
  return {std::move(line)};
}

FilteredCertainty filtered_certainty(const FirAxis& axis, std::int64_t length) {
  /// Shorter lines are filtered whole, so that steps stand where they stand in the image: a constant image
  /// then stays constant to the last bits, and not to what a grid adds (gaussian.h).
  constexpr std::int64_t kLongLine = 1 << 16;
  const auto reach = static_cast<std::int64_t>(std::ceil(kFirCutOff * axis.sigma)) + 1;
  const std::int64_t ends = std::min(length, std::max(2 * reach, kLongLine));
  std::vector<double> line(static_cast<std::size_t>(ends), 1.0);
  const FirBlur blur{{}, FirAxis{axis.sigma, FilterBoundary::kZero}};
  for (const FirStage& stage : plan_fir_stages(blur, {1, ends})) line = filtered_by(*stage.x, line);
  return {std::move(line)};
}

template <class From, class To>
void normalize(CpuExecutor& executor, const FilterImages<const From, Space::kHost>& images,
               const FilteredCertainties& certainties, const FilterImages<To, Space::kHost>& normalized) {
  using Real = std::conditional_t<std::is_same_v<From, double>, double, float>;
  check_normalized(images, normalized);
  executor.check_interrupt();
  const HostImage<const From>& image = images.first;
  const auto rows = line_factors<Real>(executor, certainties.y, image.height);
  const auto columns = line_factors<Real>(executor, certainties.x, image.width);
  const std::int64_t row = image.width * image.channels;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / row);
  parallel_ranges(executor, images.count * image.height, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      const Real down = rows.at(y % image.height);
      const From* from = image.data + y * row;
      To* to = normalized.first.data + y * row;
      const auto scale = [&](std::int64_t at, Real across) {
        const Real value = static_cast<Real>(from[at]) * (down * across);
        if constexpr (std::is_same_v<To, Float16>) {
          to[at] = nearest_float16(value);
        } else {
          to[at] = value;
        }
      };
      const std::int64_t inner = columns.first * image.channels;
      const std::int64_t outer = columns.last * image.channels;
      for (std::int64_t at = 0; at < inner; ++at) scale(at, columns.at(at / image.channels));
      for (std::int64_t at = inner; at < outer; ++at) scale(at, Real{1});
      for (std::int64_t at = outer; at < row; ++at) scale(at, columns.at(at / image.channels));
    }
  });
}

#define CUMULUS_INSTANTIATE(From, To)                                                            \
  template void normalize<From, To>(CpuExecutor&, const FilterImages<const From, Space::kHost>&, \
                                    const FilteredCertainties&, const FilterImages<To, Space::kHost>&);
CUMULUS_INSTANTIATE(float, float)
CUMULUS_INSTANTIATE(double, double)
CUMULUS_INSTANTIATE(Float16, float)
CUMULUS_INSTANTIATE(float, Float16)
#undef CUMULUS_INSTANTIATE

#if !CUMULUS_WITH_CUDA
#define CUMULUS_INSTANTIATE(From, To)                                                   \
  template <>                                                                           \
  void CUMULUS_WITHOUT_CUDA(normalize, const FilterImages<const From, Space::kDevice>&, \
                            const FilteredCertainties&, const FilterImages<To, Space::kDevice>&);
CUMULUS_INSTANTIATE(float, float)
CUMULUS_INSTANTIATE(double, double)
CUMULUS_INSTANTIATE(Float16, float)
CUMULUS_INSTANTIATE(float, Float16)
#undef CUMULUS_INSTANTIATE
#endif

}  // namespace cumulus

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/weighted_sums.h"

namespace cumulus {
namespace {

using namespace recursive_filter;

/// Numbers of a row side by side whose columns are filtered together: their rows within reach stay in the
/// second cache.
constexpr std::int64_t kColumns = 512;
/// Rows of a piece of work, along y.
constexpr std::int64_t kBand = 64;

/// Rows of a piece of work, along x: one, if rows are so long that one takes milliseconds.
std::int64_t rows_at_once(std::int64_t most, std::int64_t row_numbers) {
  constexpr std::int64_t kNumbersAtOnce = 1 << 18;
  return std::clamp<std::int64_t>(kNumbersAtOnce / row_numbers, 1, most);
}

/// Filters rows. A row is laid out with what its boundary makes of it, every advance-th pixel side by side.
template <class Real>
class RowFilter {
 public:
  RowFilter(const FirPass& pass, std::int64_t channels)
      : pass_(pass), channels_(channels), groups_(divide_up(pass.out_length, pass.phases)), sums_(pass.taps) {
    places_ = (groups_ - 1) * pass.advance + pass.taps;
    plane_ = divide_up(places_, pass.advance) * channels;
    line_.resize(static_cast<std::size_t>(plane_ * pass.advance));
    if (pass.phases > 1) phase_.resize(static_cast<std::size_t>(groups_ * channels));
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      sums_.sources[static_cast<std::size_t>(tap)] = place(tap);
    }
  }

  void filter(const Real* from, Real* to) {
    lay_out(from);
    for (std::int64_t phase = 0; phase < std::min(pass_.phases, pass_.out_length); ++phase) {
      std::transform(pass_.of_phase(phase), pass_.of_phase(phase + 1), sums_.weights.begin(),
                     [](double weight) { return static_cast<Real>(weight); });
      if (pass_.phases == 1) return sums_.compute(groups_ * channels_, to);
      const std::int64_t pixels = divide_up(pass_.out_length - phase, pass_.phases);
      sums_.compute(pixels * channels_, phase_.data());
      copy_pixels(phase_.data(), 1, to + phase * channels_, pass_.phases, pixels);
    }
  }

 private:
  /// Where the place lies that is `at` after the first one.
  Real* place(std::int64_t at) {
    return line_.data() + at % pass_.advance * plane_ + at / pass_.advance * channels_;
  }

  void lay_out(const Real* from) {
    const std::int64_t begin = std::clamp<std::int64_t>(-pass_.first, 0, places_);
    const std::int64_t end = std::clamp(pass_.in_length - pass_.first, begin, places_);
    for (std::int64_t at = 0; at < begin; ++at) lay_out_beyond(at, from);
    for (std::int64_t at = end; at < places_; ++at) lay_out_beyond(at, from);
    if (pass_.advance == 1) {
      std::copy_n(from + (pass_.first + begin) * channels_, (end - begin) * channels_, place(begin));
      return;
    }
    for (std::int64_t at = begin; at < std::min(begin + pass_.advance, end); ++at) {
      copy_pixels(from + (pass_.first + at) * channels_, pass_.advance, place(at), 1,
                  divide_up(end - at, pass_.advance));
    }
  }

  void lay_out_beyond(std::int64_t at, const Real* from) {
    const std::int64_t source = source_pixel(pass_.first + at, pass_.in_length, pass_.boundary);
    if (source < 0) {
      std::fill_n(place(at), channels_, Real{0});
    } else {
      std::copy_n(from + source * channels_, channels_, place(at));
    }
  }

  /// Pixels that lie `from_step` and `to_step` pixels apart.
  void copy_pixels(const Real* from, std::int64_t from_step, Real* to, std::int64_t to_step,
                   std::int64_t count) const {
    const auto copy = [&](auto channels) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (int c = 0; c < channels; ++c) {
          to[i * to_step * channels + c] = from[i * from_step * channels + c];
        }
      }
    };
    if (channels_ == 1) return copy(std::integral_constant<int, 1>());
    if (channels_ == 2) return copy(std::integral_constant<int, 2>());
    if (channels_ == 3) return copy(std::integral_constant<int, 3>());
    copy(std::integral_constant<int, 4>());
  }

  const FirPass& pass_;
  std::int64_t channels_;
  std::int64_t groups_;  // places of each phase
  std::int64_t places_;  // of the input that are within reach
  std::int64_t plane_;
  std::vector<Real> line_;
  std::vector<Real> phase_;
  WeightedSums<Real> sums_;
};

template <class Real>
void blur_rows(CpuExecutor& executor, const FirPass& pass, const HostImage<const Real>& image,
               const HostImage<Real>& filtered) {
  const std::int64_t grain = rows_at_once(4, filtered.width * image.channels);
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    RowFilter<Real> rows(pass, image.channels);
    for (std::int64_t row = first; row < end; ++row) rows.filter(image.row(row), filtered.row(row));
  });
}

/// Row `at` of the result, from number `column` on.
template <class Real>
void filter_row_along_y(const FirPass& pass, const HostImage<const Real>& image, std::int64_t at,
                        std::int64_t column, WeightedSums<Real>& sums) {
  const double* weights = pass.of_phase(at % pass.phases);
  const std::int64_t first = at / pass.phases * pass.advance + pass.first;
  std::int64_t taps = 0;
  for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
    const std::int64_t row = source_pixel(first + tap, pass.in_length, pass.boundary);
    if (row < 0) continue;
    sums.sources[static_cast<std::size_t>(taps)] = image.row(row) + column;
    sums.weights[static_cast<std::size_t>(taps)] = static_cast<Real>(weights[tap]);
    ++taps;
  }
  sums.limit(taps);
}

template <class Real>
void blur_columns(CpuExecutor& executor, const FirPass& pass, const HostImage<const Real>& image,
                  const HostImage<Real>& filtered) {
  const std::int64_t numbers = image.width * image.channels;
  const std::int64_t bands = divide_up(pass.out_length, kBand);
  parallel_ranges(executor, divide_up(numbers, kColumns) * bands, 1,
                  [&](std::int64_t first, std::int64_t end) {
                    WeightedSums<Real> sums(pass.taps);
                    for (std::int64_t piece = first; piece < end; ++piece) {
                      const std::int64_t column = piece / bands * kColumns;
                      const std::int64_t begin = piece % bands * kBand;
                      for (std::int64_t row = begin; row < std::min(begin + kBand, pass.out_length); ++row) {
                        filter_row_along_y(pass, image, row, column, sums);
                        sums.compute(std::min(kColumns, numbers - column), filtered.row(row) + column);
                      }
                    }
                  });
}

template <class Real>
struct FirSpans {
  HostSpan<Real> even, odd;
};

template <class Real>
void blur_image(CpuExecutor& executor, const std::vector<FirStage>& stages, HostImage<const Real> image,
                const HostImage<Real>& blurred, const FirSpans<Real>& between) {
  FirExtents extents{image.height, image.width};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    executor.check_interrupt();
    extents = extents_after(stages[i], extents);
    Real* data = (i % 2 == 0 ? between.even : between.odd).data();
    const HostImage<Real> to = i + 1 == stages.size()
                                   ? blurred
                                   : HostImage<Real>(data, extents.height, extents.width, image.channels);
    if (stages[i].x.has_value()) {
      blur_rows<Real>(executor, *stages[i].x, image, to);
    } else {
      blur_columns<Real>(executor, *stages[i].y, image, to);
    }
    image = to;
  }
}

/// Calls convert(from, count, to) with pieces of rows.
template <class T, class U, class Convert>
void convert_rows(CpuExecutor& executor, const HostImage<T>& from, const HostImage<U>& to,
                  const Convert& convert) {
  const std::int64_t count = from.width * from.channels;
  parallel_ranges(executor, from.height, rows_at_once(16, count), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      std::transform(from.row(row), from.row(row) + count, to.row(row), convert);
    }
  });
}

}  // namespace

template <class T>
void fir_gaussian_blur(CpuExecutor& executor, FilterImages<const T, Space::kHost> images, const FirBlur& blur,
                       FilterImages<T, Space::kHost> blurred) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  check_views(images, blurred);
  check_fir_blur(blur);
  const HostImage<const T>& shape = images.first;
  const FirExtents extents{shape.height, shape.width};
  const std::vector<FirStage> stages = axis_by_axis(plan_fir_stages(blur, extents));
  const FirScratch scratch = fir_scratch(stages, extents, shape.channels);
  FirSpans<Real> between;
  between.even = executor.scratch<Real>(static_cast<std::size_t>(scratch.even));
  between.odd = executor.scratch<Real>(static_cast<std::size_t>(scratch.odd));
  if constexpr (std::is_same_v<T, Float16>) {
    const auto elements = static_cast<std::size_t>(shape.elements());
    const HostSpan<float> floats = executor.scratch<float>(2 * elements);
    const HostImage<float> wide(floats.data(), shape.height, shape.width, shape.channels);
    const HostImage<float> result(floats.data() + elements, shape.height, shape.width, shape.channels);
    for (std::int64_t i = 0; i < images.count; ++i) {
      convert_rows(executor, images[i], wide, [](Float16 value) -> float { return value; });
      blur_image<float>(executor, stages, wide, result, between);
      convert_rows(executor, result, blurred[i], nearest_float16);
    }
  } else {
    for (std::int64_t i = 0; i < images.count; ++i) {
      blur_image<Real>(executor, stages, images[i], blurred[i], between);
    }
  }
}

#define CUMULUS_INSTANTIATE(T)                                                                          \
  template void fir_gaussian_blur<T>(CpuExecutor&, FilterImages<const T, Space::kHost>, const FirBlur&, \
                                     FilterImages<T, Space::kHost>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: this satisfies the linker.
template <class T>
void fir_gaussian_blur(CudaExecutor& /*executor*/, FilterImages<const T, Space::kDevice> /*images*/,
                       const FirBlur& /*blur*/, FilterImages<T, Space::kDevice> /*blurred*/) {
  throw CudaError(0, "fir_gaussian_blur", __FILE__, __LINE__);
}
#define CUMULUS_INSTANTIATE(T)                                                                             \
  template void fir_gaussian_blur<T>(CudaExecutor&, FilterImages<const T, Space::kDevice>, const FirBlur&, \
                                     FilterImages<T, Space::kDevice>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE
#endif

}  // namespace cumulus

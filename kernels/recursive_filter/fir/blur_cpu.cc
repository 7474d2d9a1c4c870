#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/fresh_pages.h"
#include "kernels/core/parallel.h"
#include "kernels/core/row_pieces.h"
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

/// Rows of as many bytes are so far apart that a band of them begins more large pages than a slice may.
constexpr std::int64_t kWideRowBytes = 1 << 16;

/// Numbers of a row that take milliseconds.
constexpr std::int64_t kNumbersAtOnce = 1 << 18;

/// Rows of a piece of work, along x: one, if rows are so long that one takes milliseconds.
std::int64_t rows_at_once(std::int64_t most, std::int64_t row_numbers) {
  return std::clamp<std::int64_t>(kNumbersAtOnce / row_numbers, 1, most);
}

/// Groups of a row's pixels, one of each phase, that are filtered at once: all, unless they are so many that
/// they would take milliseconds. Pieces are whole vectors of any width, so that their sums are a whole row's.
std::int64_t groups_at_once(const FirPass& pass, std::int64_t channels) {
  constexpr std::int64_t kWholeVectors = 128;
  const std::int64_t numbers = channels * std::max(pass.phases, pass.advance);
  return std::max<std::int64_t>(1, kNumbersAtOnce / numbers / kWholeVectors) * kWholeVectors;
}

/// Filters rows, a piece at a time, which is laid out with what its boundary makes of it, every advance-th
/// pixel side by side.
template <class Real>
class RowFilter {
 public:
  RowFilter(const FirPass& pass, std::int64_t channels)
      : pass_(pass),
        channels_(channels),
        all_groups_(divide_up(pass.out_length, pass.phases)),
        groups_(std::min(all_groups_, groups_at_once(pass, channels))),
        sums_(pass.taps) {
    plane_ = divide_up(places(groups_), pass.advance) * channels;
    line_.resize(static_cast<std::size_t>(plane_ * pass.advance));
    if (pass.phases > 1) phase_.resize(static_cast<std::size_t>(groups_ * channels));
    for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
      sums_.sources[static_cast<std::size_t>(tap)] = place(tap);
    }
  }

  /// A piece of the row that begins at `from`, into that which begins at `to`.
  void filter(std::int64_t piece, const Real* from, Real* to) {
    const std::int64_t first_group = piece * groups_;
    const std::int64_t groups = std::min(groups_, all_groups_ - first_group);
    lay_out(pass_.first + first_group * pass_.advance, places(groups), from);
    const std::int64_t first_pixel = first_group * pass_.phases;
    const std::int64_t length = std::min(groups * pass_.phases, pass_.out_length - first_pixel);
    Real* const piece_to = to + first_pixel * channels_;
    for (std::int64_t phase = 0; phase < std::min(pass_.phases, length); ++phase) {
      std::transform(pass_.of_phase(phase), pass_.of_phase(phase + 1), sums_.weights.begin(),
                     [](double weight) { return static_cast<Real>(weight); });
      if (pass_.phases == 1) return sums_.compute(groups * channels_, piece_to);
      const std::int64_t pixels = divide_up(length - phase, pass_.phases);
      sums_.compute(pixels * channels_, phase_.data());
      copy_pixels(phase_.data(), 1, piece_to + phase * channels_, pass_.phases, pixels);
    }
  }

 private:
  /// Where the place lies that is `at` after the first one.
  Real* place(std::int64_t at) {
    return line_.data() + at % pass_.advance * plane_ + at / pass_.advance * channels_;
  }

  /// Of the input that are within reach of so many groups.
  std::int64_t places(std::int64_t groups) const { return (groups - 1) * pass_.advance + pass_.taps; }

  /// `places` of them, from that of pixel `first` on.
  void lay_out(std::int64_t first, std::int64_t places, const Real* from) {
    const std::int64_t begin = std::clamp<std::int64_t>(-first, 0, places);
    const std::int64_t end = std::clamp(pass_.in_length - first, begin, places);
    for (std::int64_t at = 0; at < begin; ++at) lay_out_beyond(at, first, from);
    for (std::int64_t at = end; at < places; ++at) lay_out_beyond(at, first, from);
    if (pass_.advance == 1) {
      std::copy_n(from + (first + begin) * channels_, (end - begin) * channels_, place(begin));
      return;
    }
    for (std::int64_t at = begin; at < std::min(begin + pass_.advance, end); ++at) {
      copy_pixels(from + (first + at) * channels_, pass_.advance, place(at), 1,
                  divide_up(end - at, pass_.advance));
    }
  }

  void lay_out_beyond(std::int64_t at, std::int64_t first, const Real* from) {
    const std::int64_t source = source_pixel(first + at, pass_.in_length, pass_.boundary);
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
  std::int64_t all_groups_;
  std::int64_t groups_;  // of a piece
  std::int64_t plane_;
  std::vector<Real> line_;
  std::vector<Real> phase_;
  WeightedSums<Real> sums_;
};

template <class Real>
void blur_rows(CpuExecutor& executor, const FirPass& pass, const HostImage<const Real>& image,
               const HostImage<Real>& filtered) {
  const std::int64_t grain = rows_at_once(4, filtered.width * image.channels);
  const std::int64_t pieces =
      divide_up(divide_up(pass.out_length, pass.phases), groups_at_once(pass, image.channels));
  parallel_ranges(executor, image.height * pieces, grain, [&](std::int64_t first, std::int64_t end) {
    RowFilter<Real> rows(pass, image.channels);
    for (std::int64_t i = first; i < end; ++i) {
      rows.filter(i % pieces, image.row(i / pieces), filtered.row(i / pieces));
    }
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
  if (numbers * static_cast<std::int64_t>(sizeof(Real)) >= kWideRowBytes) touch_pages(executor, filtered);
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

template <class T, class U, class Convert>
void convert_rows(CpuExecutor& executor, const HostImage<T>& from, const HostImage<U>& to,
                  const Convert& convert) {
  const std::int64_t numbers = from.width * from.channels;
  parallel_row_pieces(executor, from.height, numbers, kGrainPixels, [&](const RowPiece& piece) {
    const T* row = from.row(piece.row);
    std::transform(row + piece.first, row + piece.end, to.row(piece.row) + piece.first, convert);
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
  const FirScratch scratch = fir_scratch(stages, extents, shape.channels, 1);
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

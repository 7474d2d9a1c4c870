#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/fresh_pages.h"
#include "kernels/core/parallel.h"
#include "kernels/core/row_pieces.h"
#include "kernels/core/without_cuda.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/column_filter.h"
#include "kernels/recursive_filter/fir/row_filter.h"

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

/// Before pieces of columns are written.
template <class Real>
void touch_pages_of_wide_rows(CpuExecutor& executor, const HostImage<Real>& image) {
  const std::int64_t row_bytes = image.width * image.channels * static_cast<std::int64_t>(sizeof(Real));
  if (row_bytes >= kWideRowBytes) touch_pages(executor, image);
}

/// Numbers of a row that take milliseconds.
constexpr std::int64_t kNumbersAtOnce = 1 << 18;

/// Whether all results are, as far as any thread has seen.
class AllFinite {
 public:
  template <class Filter>
  void look(const Filter& filter) {
    if (!filter.all_finite()) all_ = false;
  }
  explicit operator bool() const { return all_; }

 private:
  std::atomic<bool> all_ = true;
};

/// Rows of a piece of work, along x: one, if rows are so long that one takes milliseconds.
std::int64_t rows_at_once(std::int64_t most, std::int64_t row_numbers) {
  return std::clamp<std::int64_t>(kNumbersAtOnce / row_numbers, 1, most);
}

/// Groups of a row's pixels, one of each phase, that are filtered at once: all, unless they have more numbers
/// than that. Pieces are whole vectors of any width.
std::int64_t groups_at_once(const FirPass& pass, std::int64_t channels) {
  constexpr std::int64_t kWholeVectors = 128;
  const std::int64_t numbers = channels * std::max(pass.phases, pass.advance);
  return std::max<std::int64_t>(1, kNumbersAtOnce / numbers / kWholeVectors) * kWholeVectors;
}

template <class Real>
void blur_rows(CpuExecutor& executor, const FirPass& pass, const HostImage<const Real>& image,
               const HostImage<Real>& filtered, AllFinite& finite) {
  const std::int64_t grain = rows_at_once(4, filtered.width * image.channels);
  const std::int64_t groups = groups_at_once(pass, image.channels);
  const std::int64_t pieces = divide_up(divide_up(pass.out_length, pass.phases), groups);
  parallel_ranges(executor, image.height * pieces, grain, [&](std::int64_t first, std::int64_t end) {
    RowFilter<Real> rows(pass, image.channels, groups);
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t piece = i % pieces;
      rows.filter(piece, image.row(i / pieces),
                  filtered.row(i / pieces) + rows.first_pixel(piece) * image.channels);
    }
    finite.look(rows);
  });
}

/// Where `rows` rows of an image from `row` on begin, from number `first` on.
template <class Real>
std::array<Real*, ColumnFilter<Real>::kRows> rows_from(const HostImage<Real>& image, std::int64_t row,
                                                       std::int64_t rows, std::int64_t first) {
  std::array<Real*, ColumnFilter<Real>::kRows> to = {};
  for (std::int64_t k = 0; k < rows; ++k) to[static_cast<std::size_t>(k)] = image.row(row + k) + first;
  return to;
}

/// Calls body(row, rows) for a few rows at a time.
template <class Real, class Body>
void for_rows(std::int64_t begin, std::int64_t end, const Body& body) {
  constexpr std::int64_t kRows = ColumnFilter<Real>::kRows;
  for (std::int64_t row = begin; row < end; row += kRows) body(row, std::min(kRows, end - row));
}

template <class Real>
void blur_columns(CpuExecutor& executor, const FirPass& pass, const HostImage<const Real>& image,
                  const HostImage<Real>& filtered, AllFinite& finite) {
  const std::int64_t numbers = image.width * image.channels;
  const std::int64_t bands = divide_up(pass.out_length, kBand);
  touch_pages_of_wide_rows(executor, filtered);
  const auto filter = [&](ColumnFilter<Real>& columns, std::int64_t band, std::int64_t column) {
    const auto place_at = [&](std::int64_t place) -> const Real* {
      const std::int64_t row = source_pixel(place, pass.in_length, pass.boundary);
      return row < 0 ? nullptr : image.row(row) + column;
    };
    const std::int64_t count = std::min(kColumns, numbers - column);
    for_rows<Real>(band * kBand, std::min((band + 1) * kBand, pass.out_length),
                   [&](std::int64_t row, std::int64_t rows) {
                     columns.filter(row, rows, place_at, count, rows_from(filtered, row, rows, column));
                   });
  };
  parallel_ranges(executor, divide_up(numbers, kColumns) * bands, 1,
                  [&](std::int64_t first, std::int64_t end) {
                    ColumnFilter<Real> columns(pass);
                    for (std::int64_t piece = first; piece < end; ++piece) {
                      filter(columns, piece % bands, piece / bands * kColumns);
                    }
                    finite.look(columns);
                  });
}

/// Along y a few rows at a time, which go along x while they are in the second cache.
template <class Real>
void blur_both(CpuExecutor& executor, const FirStage& stage, const HostImage<const Real>& image,
               const HostImage<Real>& filtered, AllFinite& finite) {
  constexpr std::int64_t kRows = ColumnFilter<Real>::kRows;
  const std::int64_t numbers = image.width * image.channels;
  const std::int64_t groups = divide_up(stage.x->out_length, stage.x->phases);
  const auto place_at = [&](std::int64_t place) -> const Real* {
    const std::int64_t row = source_pixel(place, stage.y->in_length, stage.y->boundary);
    return row < 0 ? nullptr : image.row(row);
  };
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / (kRows * numbers));
  parallel_ranges(executor, divide_up(stage.y->out_length, kRows), grain,
                  [&](std::int64_t first, std::int64_t end) {
                    ColumnFilter<Real> columns(*stage.y);
                    RowFilter<Real> rows(*stage.x, image.channels, groups, kRows);
                    for_rows<Real>(first * kRows, std::min(end * kRows, stage.y->out_length),
                                   [&](std::int64_t row, std::int64_t count) {
                                     std::array<Real*, kRows> between = {};
                                     for (std::int64_t k = 0; k < kRows; ++k)
                                       between[static_cast<std::size_t>(k)] = rows.input(k);
                                     columns.filter(row, count, place_at, numbers, between);
                                     for (std::int64_t k = 0; k < count; ++k)
                                       rows.filter_input(k, filtered.row(row + k));
                                   });
                    finite.look(rows);
                  });
}

template <class Real>
void blur_stage(CpuExecutor& executor, const FirStage& stage, const HostImage<const Real>& image,
                const HostImage<Real>& filtered, AllFinite& finite) {
  if (!stage.y.has_value()) return blur_rows(executor, *stage.x, image, filtered, finite);
  if (!stage.x.has_value()) return blur_columns(executor, *stage.y, image, filtered, finite);
  blur_both(executor, stage, image, filtered, finite);
}

template <class Real>
struct FirSpans {
  HostSpan<Real> even, odd;
};

template <class Real>
void blur_image(CpuExecutor& executor, const std::vector<FirStage>& stages, HostImage<const Real> image,
                const HostImage<Real>& blurred, const FirSpans<Real>& between, AllFinite& finite) {
  FirExtents extents{image.height, image.width};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    executor.check_interrupt();
    extents = extents_after(stages[i], extents);
    Real* data = (i % 2 == 0 ? between.even : between.odd).data();
    const HostImage<Real> to = i + 1 == stages.size()
                                   ? blurred
                                   : HostImage<Real>(data, extents.height, extents.width, image.channels);
    blur_stage(executor, stages[i], image, to, finite);
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
bool fir_gaussian_blur(CpuExecutor& executor, FilterImages<const T, Space::kHost> images, const FirBlur& blur,
                       FilterImages<T, Space::kHost> blurred) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  check_views(images, blurred);
  check_fir_blur(blur);
  const HostImage<const T>& shape = images.first;
  const FirExtents extents{shape.height, shape.width};
  const std::vector<FirStage> stages = host_stages(blur, extents, shape.channels);
  const FirScratch scratch = fir_scratch(stages, extents, shape.channels, 1);
  AllFinite finite;
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
      blur_image<float>(executor, stages, wide, result, between, finite);
      convert_rows(executor, result, blurred[i], nearest_float16);
    }
  } else {
    for (std::int64_t i = 0; i < images.count; ++i) {
      blur_image<Real>(executor, stages, images[i], blurred[i], between, finite);
    }
  }
  return static_cast<bool>(finite);
}

#define CUMULUS_INSTANTIATE(T)                                                                          \
  template bool fir_gaussian_blur<T>(CpuExecutor&, FilterImages<const T, Space::kHost>, const FirBlur&, \
                                     FilterImages<T, Space::kHost>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

#if !CUMULUS_WITH_CUDA
#define CUMULUS_INSTANTIATE(T)                                                                        \
  template <>                                                                                         \
  void CUMULUS_WITHOUT_CUDA(fir_gaussian_blur, FilterImages<const T, Space::kDevice>, const FirBlur&, \
                            FilterImages<T, Space::kDevice>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE
#endif

}  // namespace cumulus

#include "kernels/summed_area_table/summed_area_table_cpu.h"

#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/primitives/vector_width.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/summed_area_table_types.h"
#include "kernels/summed_area_table/summed_area_table_vectors.h"

namespace cumulus {
namespace {

using summed_area_table::Accumulator;
using summed_area_table::kBandBytes;
using summed_area_table::kBandRows;
using summed_area_table::kStreamedBytes;
using summed_area_table::kStretch;
using summed_area_table::StreamedRow;
using summed_area_table::summand;
using summed_area_table::SumVector;
using summed_area_table::Term;

/// Rows whose running sums advance together: their additions do not wait for each other.
constexpr std::int64_t kRowsAtOnce = 4;

/// One image and its table: `sums` holds the inclusive sums, its rows maybe those of a wider table.
template <class Input, class Sum>
struct Plane {
  HostImage<const Input> image;
  HostImage<Sum> sums;
  bool exclusive = false;  // a pixel of zeros stands before each row of `sums`
  std::array<Sum, 4> offsets{};

  /// Row y of `sums`, about to be written: first what stands before it.
  Sum* begin_row(std::int64_t y) const {
    Sum* row = sums.row(y);
    if (exclusive) std::fill_n(row - sums.channels, sums.channels, Sum{0});
    return row;
  }
  /// Whether each row of `sums` begins with a line of the caches.
  bool has_whole_lines() const {
    const auto begins_line = [](auto address) { return address % 64 == 0; };
    return begins_line(reinterpret_cast<std::uintptr_t>(sums.data)) &&
           begins_line(sums.row_stride * static_cast<std::int64_t>(sizeof(Sum)));
  }
  /// Whether the table is too large to stay in the caches.
  bool is_streamed() const {
    return sums.elements() * static_cast<std::int64_t>(sizeof(Sum)) >= kStreamedBytes;
  }
};

/// Adds R rows of the image, from y on, to sums of its columns from element x on.
template <Term kTerm, int C, int R, class Input, class Sum>
void add_to_columns(const Plane<Input, Sum>& plane, std::int64_t y, std::int64_t x, std::int64_t count,
                    Sum* columns) {
  std::array<const Input*, R> rows;
  for (std::size_t r = 0; r < R; ++r) rows[r] = plane.image.row(y + static_cast<std::int64_t>(r)) + x;
  for (std::int64_t i = 0; i < count; ++i) {
    Sum sum = columns[i];
    for (std::size_t r = 0; r < R; ++r) {
      sum += summand<kTerm>(rows[r][i], plane.offsets[static_cast<std::size_t>(i % C)]);
    }
    columns[i] = sum;
  }
}

/// Writes the last row of the table of rows first..end alone to that row's place.
template <class Vectors, Term kTerm, int C, class Input, class Sum>
void sum_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  // Whole pixels of any kind, whose sums stay in the nearest cache; so many that rows are read in long runs.
  constexpr std::int64_t kBlock = (std::int64_t{16} << 10) / static_cast<std::int64_t>(sizeof(Sum)) / 12 * 12;
  const std::int64_t elements = plane.image.width * C;
  Sum* last_row = plane.begin_row(end - 1);
  std::array<Sum, C> running{};
  for (std::int64_t x = 0; x < elements; x += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - x);
    alignas(64) std::array<Sum, kBlock> columns;
    std::fill_n(columns.begin(), count, Sum{0});
    Vectors::call([&] {
      std::int64_t y = first;
      for (; y + kRowsAtOnce <= end; y += kRowsAtOnce)
        add_to_columns<kTerm, C, kRowsAtOnce>(plane, y, x, count, columns.data());
      for (; y < end; ++y) add_to_columns<kTerm, C, 1>(plane, y, x, count, columns.data());
    });
    for (std::int64_t i = 0; i < count; i += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t element = i + static_cast<std::int64_t>(channel);
        running[channel] += columns[static_cast<std::size_t>(element)];
        last_row[x + element] = running[channel];
      }
    }
  }
}

/// Rows first..first+R of the table, below the row before them.
template <class Vectors, Term kTerm, int C, int R, class Input, class Sum>
class RowFill {
 public:
  RowFill(const Plane<Input, Sum>& plane, std::int64_t first)
      : above_(first > 0 ? plane.sums.row(first - 1) : nullptr), plane_(plane) {
    for (std::size_t r = 0; r < R; ++r) {
      in_[r] = plane.image.row(first + static_cast<std::int64_t>(r));
      out_[r] = plane.begin_row(first + static_cast<std::int64_t>(r));
    }
  }

  void fill() { fill_from(0); }

  void fill_by_vectors() {
    const std::int64_t whole = whole_vectors();
    const std::int64_t stretch = kConverts ? kStretch<Sum> : whole;
    std::array<Vector, R> before{};
    for (std::int64_t x = 0; x < whole; x += stretch) {
      fill_stretch(
          x, std::min(stretch, whole - x),
          before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            sums.store(out_[r] + x + i);
          });
    }
    fill_rest(before);
  }
  /// Vectors of a whole line: a store to two lines would cost two, and rows begin anywhere.
  void fill_by_lines() {
    const std::int64_t whole = whole_vectors();
    if (whole == 0) return fill();
    const std::int64_t stretch = kConverts ? kStretch<Sum> : whole;
    std::array<Vector, R> before{};
    std::array<Vector, R> previous{};
    std::array<SumVector<typename Vector::Lane, Vectors::kBytes>, R> lanes;
    std::array<Sum*, R> line;
    for_each_row([&](auto r) __attribute__((always_inline)) {
      const auto shared = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out_[r]) %
                                                    Vectors::kBytes / sizeof(Sum));
      Vector::lanes_of_line(shared, lanes[r]);
      line[r] = out_[r] - shared;
    });
    for (std::int64_t x = 0; x < whole; x += stretch) {
      fill_stretch(
          x, std::min(stretch, whole - x),
          before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            if (x + i == 0) {
              sums.store(out_[r]);
            } else {
              sums.store_line(previous[r], lanes[r], line[r] + x + i);
            }
            previous[r] = sums;
          });
    }
    for_each_row([&](auto r)
                     __attribute__((always_inline)) { previous[r].store(out_[r] + whole - Vector::kCount); });
    fill_rest(before);
  }
  /// All rows but the last, which the next rows need at once, go past the caches.
  void fill_past_caches() {
    const std::int64_t whole = whole_vectors();
    std::array<StreamedRow<Sum>, R - 1> streamed;
    for (std::size_t r = 0; r + 1 < R; ++r) streamed[r].begin(out_[r]);
    std::array<Vector, R> before{};
    for (std::int64_t x = 0; x < whole; x += kStretch<Sum>) {
      const std::int64_t count = std::min(kStretch<Sum>, whole - x);
      std::array<Sum*, R> to;
      for (std::size_t r = 0; r + 1 < R; ++r) to[r] = streamed[r].next();
      to[R - 1] = out_[R - 1] + x;
      fill_stretch(
          x, count, before, [&](auto r, std::int64_t i, const Vector& sums) __attribute__((always_inline)) {
            sums.store(to[r] + i);
          });
      for (auto& row : streamed) row.advance(count);
    }
    for (auto& row : streamed) row.finish();
    fill_rest(before);
  }

 private:
  using Vector = SumVector<Sum, Vectors::kBytes>;
  static constexpr bool kConverts = !std::is_same_v<Input, Sum> || kTerm != Term::kValue;

  std::int64_t whole_vectors() const { return plane_.image.width / Vector::kCount * Vector::kCount; }

  /// f(0), ..., f(R - 1), as constants: arrays of vectors stay in registers.
  template <class F>
  [[gnu::always_inline]] static void for_each_row(const F& f) {
    [&]<std::size_t... kRows>(std::index_sequence<kRows...>) __attribute__((always_inline)) {
      (f(std::integral_constant<std::size_t, kRows>{}), ...);
    }
    (std::make_index_sequence<R>{});
  }

  /// Calls store(r, i, sums) with vectors of sums of each row r, from pixel x + i on.
  template <class Store>
  [[gnu::always_inline]] void fill_stretch(std::int64_t x, std::int64_t count,
                                           std::array<Vector, R>& sums_before, const Store& store) {
    static_assert(C == 1);
    alignas(64) std::array<std::array<Sum, kConverts ? kStretch<Sum> : 1>, R> converted;
    std::array<const Sum*, R> from;
    for (std::size_t r = 0; r < R; ++r) from[r] = summands_of(in_[r] + x, count, converted[r].data());
    const Sum* above = above_ != nullptr ? above_ + x : nullptr;
    std::array<Vector, R> before = sums_before;
    for (std::int64_t i = 0; i < count; i += Vector::kCount) {
      // All reads before the writes: those of rows whose addresses differ by a multiple of 4096 would wait.
      std::array<Vector, R> rows;
      for_each_row([&](auto r) __attribute__((always_inline)) { rows[r].load(from[r] + i); });
      Vector sum;
      if (above != nullptr) sum.load(above + i);
      for_each_row([&](auto r) __attribute__((always_inline)) {
        rows[r].accumulate(before[r]);
        sum.add(rows[r]);
        store(r, i, sum);
      });
    }
    sums_before = before;
  }
  /// The pixels themselves where they are what is summed.
  const Sum* summands_of(const Input* pixels, std::int64_t count, Sum* converted) const {
    if constexpr (!kConverts) {
      return pixels;
    } else {
      for (std::int64_t i = 0; i < count; ++i) converted[i] = summand<kTerm>(pixels[i], plane_.offsets[0]);
      return converted;
    }
  }
  void fill_rest(const std::array<Vector, R>& before) {
    for (std::size_t r = 0; r < R; ++r) running_[r][0] = before[r].first();
    fill_from(whole_vectors());
  }
  void fill_from(std::int64_t first) {
    for (std::int64_t x = first * C; x < plane_.image.width * C; x += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t i = x + static_cast<std::int64_t>(channel);
        Sum sum = above_ != nullptr ? above_[i] : Sum{0};
        for (std::size_t r = 0; r < R; ++r) {
          running_[r][channel] += summand<kTerm>(in_[r][i], plane_.offsets[channel]);
          sum += running_[r][channel];
          out_[r][i] = sum;
        }
      }
    }
  }

  const Sum* above_;
  const Plane<Input, Sum>& plane_;
  std::array<const Input*, R> in_;
  std::array<Sum*, R> out_;
  std::array<std::array<Sum, C>, R> running_{};
};

template <class Vectors, Term kTerm, int C, class Input, class Sum>
void fill_rows_at_once(const Plane<Input, Sum>& plane, std::int64_t first) {
  RowFill<Vectors, kTerm, C, kRowsAtOnce, Input, Sum> rows(plane, first);
  if constexpr (C == 1 && Vectors::kBytes > PlainVectors::kBytes) {
    if (plane.is_streamed()) return rows.fill_past_caches();
    // Where a vector is a line, each of a row that does not begin with one would lie in two.
    if constexpr (Vectors::kBytes == 64) {
      if (!plane.has_whole_lines()) return rows.fill_by_lines();
    }
    return rows.fill_by_vectors();
  }
  rows.fill();
}

template <class Vectors, Term kTerm, int C, class Input, class Sum>
void fill_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  std::int64_t y = first;
  Vectors::call([&] {
    for (; y + kRowsAtOnce <= end; y += kRowsAtOnce) fill_rows_at_once<Vectors, kTerm, C>(plane, y);
  });
  finish_streaming();
  for (; y < end; ++y) RowFill<PlainVectors, kTerm, C, 1, Input, Sum>(plane, y).fill();
}

/// The tables of one image that are filled together: of its pixels, and maybe of their squares. A band's
/// pixels come from memory once for both.
template <class Vectors, int C, class Input, class Sum>
struct Tables {
  Plane<Input, Sum> values;
  Plane<Input, Sum> squares;
  bool has_squares;
  bool has_offsets;

  void sum(std::int64_t first, std::int64_t end) const {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return sum_band<Vectors, Term::kOffset, C>(values, first, end);
    }
    sum_band<Vectors, Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) sum_band<Vectors, Term::kSquare, C>(squares, first, end);
    }
  }
  void carry(std::int64_t first, std::int64_t end) const {
    if (first == 0) return;
    add_row(values.sums, first - 1, end - 1);
    if (has_squares) add_row(squares.sums, first - 1, end - 1);
  }
  void fill(std::int64_t first, std::int64_t end) const {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return fill_band<Vectors, Term::kOffset, C>(values, first, end);
    }
    fill_band<Vectors, Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) fill_band<Vectors, Term::kSquare, C>(squares, first, end);
    }
  }

 private:
  static void add_row(const HostImage<Sum>& sums, std::int64_t from, std::int64_t to) {
    const Sum* before = sums.row(from);
    Sum* last = sums.row(to);
    for (std::int64_t i = 0; i < sums.width * C; ++i) last[i] += before[i];
  }
};

/// Bands of rows pass through three stages: (1) each band's last row, as if the band were alone;
/// (2) band after band, the last row of the band before is added to it, which makes it final;
/// (3) the band's other rows, below the final last row of the band before.
template <class Vectors, int C, class Input, class Sum>
void build_in_bands(CpuExecutor& executor, const Tables<Vectors, C, Input, Sum>& tables) {
  const HostImage<const Input>& image = tables.values.image;
  const std::int64_t row_bytes =
      image.width * C * static_cast<std::int64_t>(std::max(sizeof(Input), sizeof(Sum)));
  // The last row aside, which is summed, a band's rows are filled kRowsAtOnce at a time.
  const std::int64_t band_rows = std::max(kBandRows, kBandBytes / row_bytes) / kRowsAtOnce * kRowsAtOnce + 1;
  if (image.height <= band_rows) return tables.fill(0, image.height);

  using Band = std::pair<std::int64_t, std::int64_t>;
  std::int64_t next_row = 0;
  const auto next_band = [&](oneapi::tbb::flow_control& control) {
    const Band band(next_row, std::min(next_row + band_rows, image.height));
    if (band.first == image.height) control.stop();
    next_row = band.second;
    return band;
  };
  const auto sum = [&](Band band) {
    tables.sum(band.first, band.second);
    return band;
  };
  const auto carry = [&](Band band) {
    tables.carry(band.first, band.second);
    return band;
  };
  const auto fill = [&](Band band) { tables.fill(band.first, band.second - 1); };

  using oneapi::tbb::filter_mode;
  using oneapi::tbb::make_filter;
  executor.run([&] {
    oneapi::tbb::parallel_pipeline(2 * static_cast<std::size_t>(executor.threads()),
                                   make_filter<void, Band>(filter_mode::serial_in_order, next_band) &
                                       make_filter<Band, Band>(filter_mode::parallel, sum) &
                                       make_filter<Band, Band>(filter_mode::serial_in_order, carry) &
                                       make_filter<Band, void>(filter_mode::parallel, fill));
  });
}

/// The part of a table below its zero row, which it fills, and to the right of its zero column.
template <class Sum>
HostImage<Sum> without_zeros(Sum* table, const HostImage<Sum>& shape, bool exclusive) {
  HostImage<Sum> sums(table, shape.height, shape.width, shape.channels);
  if (!exclusive) return sums;
  std::fill_n(table, sums.row_stride, Sum{0});
  return {sums.row(1) + sums.channels, sums.height - 1, sums.width - 1, sums.channels, sums.row_stride};
}

template <class Vectors, int C, class Input, class Sum>
void build_plane(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job, std::int64_t plane) {
  HostImage<const Input> image = job.image;
  image.data += plane * job.plane_stride;
  const std::int64_t table = plane * job.sums.elements();
  const auto plane_of = [&](Sum* sums) {
    return Plane<Input, Sum>{image, without_zeros(sums + table, job.sums, job.exclusive), job.exclusive};
  };
  Tables<Vectors, C, Input, Sum> tables{
      plane_of(job.sums.data), {}, job.squares != nullptr, job.offsets != nullptr};
  if (tables.has_squares) tables.squares = plane_of(job.squares);
  if constexpr (std::is_same_v<Sum, float>) {
    if (tables.has_offsets) std::copy_n(job.offsets + plane * C, C, tables.values.offsets.begin());
  }
  build_in_bands(executor, tables);
}

template <class Vectors, int C, class Input, class Sum>
void build_planes(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
  parallel_ranges(executor, job.planes, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t plane = first; plane < end; ++plane) build_plane<Vectors, C>(executor, job, plane);
  });
}

/// The mean of one channel, row by row, so that the order of the sums does not depend on the threads.
template <class Input>
float average_channel(const HostImage<const Input>& image, std::int64_t channel, HostSpan<double> row_sums) {
  double sum = 0;
  for (std::int64_t y = 0; y < image.height; ++y)
    sum += row_sums[static_cast<std::size_t>(y * image.channels + channel)];
  return static_cast<float>(sum / static_cast<double>(image.pixels()));
}

}  // namespace

template <class Vectors, class Input, class Sum>
void summed_area_table::build_with(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
  summed_area_table::check_job(job);
  executor.check_interrupt();
  using Wide = Accumulator<Sum>;
  const HostImage<Wide> sums(reinterpret_cast<Wide*>(job.sums.data), job.sums.height, job.sums.width,
                             job.sums.channels);
  const TableJob<Input, Wide, Space::kHost> wide{
      job.image,  sums, job.planes, job.plane_stride, job.exclusive, reinterpret_cast<Wide*>(job.squares),
      job.offsets};
  switch (job.image.channels) {  // interleaved ones go element by element
    case 1:
      return build_planes<Vectors, 1>(executor, wide);
    case 2:
      return build_planes<PlainVectors, 2>(executor, wide);
    case 3:
      return build_planes<PlainVectors, 3>(executor, wide);
    default:
      return build_planes<PlainVectors, 4>(executor, wide);
  }
}

template <class Input, class Sum>
void build_summed_area_table(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
  with_widest_vectors([&]<class Vectors>() { summed_area_table::build_with<Vectors>(executor, job); });
}

template <class Input>
void average_image(CpuExecutor& executor, const TableJob<Input, float, Space::kHost>& job,
                   HostSpan<float> means) {
  check_image("summed_area_table", job.image);
  executor.check_interrupt();
  const auto& image = job.image;
  const auto row_sums =
      executor.scratch<double>(static_cast<std::size_t>(job.planes * image.height * image.channels));
  parallel_ranges(executor, job.planes * image.height, 16, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      const Input* pixels = image.row(row % image.height) + row / image.height * job.plane_stride;
      for (std::int64_t channel = 0; channel < image.channels; ++channel) {
        double sum = 0;
        for (std::int64_t x = 0; x < image.width; ++x)
          sum += static_cast<double>(pixels[x * image.channels + channel]);
        row_sums[static_cast<std::size_t>(row * image.channels + channel)] = sum;
      }
    }
  });
  for (std::int64_t plane = 0; plane < job.planes; ++plane) {
    const auto rows = static_cast<std::size_t>(image.height * image.channels);
    for (std::int64_t channel = 0; channel < image.channels; ++channel) {
      means[static_cast<std::size_t>(plane * image.channels + channel)] =
          average_channel(image, channel, row_sums.subspan(static_cast<std::size_t>(plane) * rows, rows));
    }
  }
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
namespace {
[[noreturn]] void no_cuda(const char* call) { throw CudaError(0, call, __FILE__, __LINE__); }
}  // namespace
template <class Input, class Sum>
void build_summed_area_table(CudaExecutor& /*executor*/,
                             const TableJob<Input, Sum, Space::kDevice>& /*job*/) {
  no_cuda("build_summed_area_table");
}
template <class Input>
void average_image(CudaExecutor& /*executor*/, const TableJob<Input, float, Space::kDevice>& /*job*/,
                   DeviceSpan<float> /*means*/) {
  no_cuda("average_image");
}
#define CUMULUS_WITHOUT_CUDA(Input, Sum) \
  template void build_summed_area_table(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_WITHOUT_CUDA);
template void average_image(CudaExecutor&, const TableJob<Float16, float, Space::kDevice>&,
                            DeviceSpan<float>);
template void average_image(CudaExecutor&, const TableJob<float, float, Space::kDevice>&, DeviceSpan<float>);
#endif

#if defined(__x86_64__)
#define CUMULUS_WITH_WIDE_VECTORS(Input, Sum)                            \
  template void summed_area_table::build_with<WideVectors>(CpuExecutor&, \
                                                           const TableJob<Input, Sum, Space::kHost>&)
#else
#define CUMULUS_WITH_WIDE_VECTORS(Input, Sum) static_assert(true)
#endif
#define CUMULUS_ON_THE_CPU(Input, Sum)                                                                  \
  template void summed_area_table::build_with<PlainVectors>(CpuExecutor&,                               \
                                                            const TableJob<Input, Sum, Space::kHost>&); \
  CUMULUS_WITH_WIDE_VECTORS(Input, Sum);                                                                \
  template void build_summed_area_table(CpuExecutor&, const TableJob<Input, Sum, Space::kHost>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_ON_THE_CPU);
template void average_image(CpuExecutor&, const TableJob<Float16, float, Space::kHost>&, HostSpan<float>);
template void average_image(CpuExecutor&, const TableJob<float, float, Space::kHost>&, HostSpan<float>);

}  // namespace cumulus

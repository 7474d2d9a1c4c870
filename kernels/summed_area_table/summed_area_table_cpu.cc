#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "kernels/core/parallel.h"
#include "kernels/core/vector_width.h"
#include "kernels/core/without_cuda.h"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/cpu/bands.h"
#include "kernels/summed_area_table/cpu/build.h"
#include "kernels/summed_area_table/element_pairs.h"
#include "kernels/summed_area_table/summand.h"
#include "kernels/summed_area_table/tuning.h"

namespace cumulus {
namespace {

using summed_area_table::Accumulator;
using summed_area_table::fill_band;
using summed_area_table::kBandBytes;
using summed_area_table::kBandRows;
using summed_area_table::kRowsAtOnce;
using summed_area_table::Plane;
using summed_area_table::sum_band;
using summed_area_table::Term;

/// Wider images are summed a panel of so many columns after the other, so that no band takes longer than a
/// slice may.
constexpr std::int64_t kPanelColumns = 1 << 17;

/// What is done to rows first..end of one image's tables. The pipeline of bands is compiled once for all
/// kinds of them.
class BandStages {
 public:
  virtual void sum(std::int64_t first, std::int64_t end) const = 0;
  virtual void carry(std::int64_t first, std::int64_t end) const = 0;
  virtual void fill(std::int64_t first, std::int64_t end) const = 0;

 protected:
  ~BandStages() = default;
};

/// The tables of one image that are filled together: of its pixels, and maybe of their squares. A band's
/// pixels come from memory once for both. What is no inner loop is compiled once for all vectors and
/// channels.
template <class Input, class Sum>
class TablePair : public BandStages {
 public:
  Plane<Input, Sum> values;
  Plane<Input, Sum> squares;
  bool has_squares = false;
  bool has_offsets = false;

  void carry(std::int64_t first, std::int64_t end) const override {
    if (first == 0) return;
    add_row(values.sums, first - 1, end - 1);
    if (has_squares) add_row(squares.sums, first - 1, end - 1);
  }

 protected:
  ~TablePair() = default;

 private:
  static void add_row(const HostImage<Sum>& sums, std::int64_t from, std::int64_t to) {
    const Sum* before = sums.row(from);
    Sum* last = sums.row(to);
    for (std::int64_t i = 0; i < sums.width * sums.channels; ++i) last[i] += before[i];
  }
};

template <class Vectors, int C, class Input, class Sum>
class Tables final : public TablePair<Input, Sum> {
 public:
  using TablePair<Input, Sum>::values, TablePair<Input, Sum>::squares;
  using TablePair<Input, Sum>::has_squares, TablePair<Input, Sum>::has_offsets;

  void sum(std::int64_t first, std::int64_t end) const override {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return sum_band<Vectors, Term::kOffset, C>(values, first, end);
    }
    sum_band<Vectors, Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) sum_band<Vectors, Term::kSquare, C>(squares, first, end);
    }
  }
  void fill(std::int64_t first, std::int64_t end) const override {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return fill_band<Vectors, Term::kOffset, C>(values, first, end);
    }
    fill_band<Vectors, Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) fill_band<Vectors, Term::kSquare, C>(squares, first, end);
    }
  }
};

/// Bands of rows pass through three stages: (1) each band's last row, as if the band were alone;
/// (2) band after band, the last row of the band before is added to it, which makes it final;
/// (3) the band's other rows, below the final last row of the band before.
void build_in_bands(CpuExecutor& executor, std::int64_t height, std::int64_t row_bytes,
                    const BandStages& tables) {
  // The last row aside, which is summed, a band's rows are filled kRowsAtOnce at a time.
  const std::int64_t band_rows = std::max(kBandRows, kBandBytes / row_bytes) / kRowsAtOnce * kRowsAtOnce + 1;
  if (height <= band_rows) {
    const Slice slice(executor);
    return tables.fill(0, height);
  }

  using Band = std::pair<std::int64_t, std::int64_t>;
  std::int64_t next_row = 0;
  const auto next_band = [&](oneapi::tbb::flow_control& control, const Slice& slice) {
    const Band band(next_row, std::min(next_row + band_rows, height));
    if (band.first == height || slice.over()) {
      control.stop();
      return Band();
    }
    executor.check_interrupt();
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
  const auto run_slice = [&](const Slice& slice) {
    const auto next = [&](oneapi::tbb::flow_control& control) { return next_band(control, slice); };
    oneapi::tbb::parallel_pipeline(2 * static_cast<std::size_t>(executor.threads()),
                                   make_filter<void, Band>(filter_mode::serial_in_order, next) &
                                       make_filter<Band, Band>(filter_mode::parallel, sum) &
                                       make_filter<Band, Band>(filter_mode::serial_in_order, carry) &
                                       make_filter<Band, void>(filter_mode::parallel, fill));
  };
  while (next_row < height) {
    const Slice slice(executor);
    executor.run([&] { run_slice(slice); });
  }
}

/// The part of a table below its zero row, which it fills, and to the right of its zero column.
template <class Sum>
HostImage<Sum> without_zeros(Sum* table, const HostImage<Sum>& shape, bool exclusive) {
  HostImage<Sum> sums(table, shape.height, shape.width, shape.channels);
  if (!exclusive) return sums;
  std::fill_n(table, sums.row_stride, Sum{0});
  return {sums.row(1) + sums.channels, sums.height - 1, sums.width - 1, sums.channels, sums.row_stride};
}

/// The table's columns from `first` on, `count` of them, as a table of its own.
template <class Input, class Sum>
Plane<Input, Sum> panel_of(Plane<Input, Sum> plane, std::int64_t first, std::int64_t count) {
  plane.image.data += first * plane.image.channels;
  plane.sums.data += first * plane.sums.channels;
  plane.image.width = plane.sums.width = count;
  plane.exclusive = plane.exclusive && first == 0;
  return plane;
}

/// Adds to a panel's sums what is left of it, which is the pixel before each of its rows.
template <class Sum>
void add_left(CpuExecutor& executor, const HostImage<Sum>& sums) {
  const std::int64_t grain = std::max<std::int64_t>(1, kPanelColumns / sums.width);
  parallel_ranges(executor, sums.height, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      Sum* row = sums.row(y);
      std::array<Sum, 4> left;
      std::copy_n(row - sums.channels, sums.channels, left.begin());
      for (std::int64_t x = 0; x < sums.width; ++x) {
        for (std::int64_t channel = 0; channel < sums.channels; ++channel) {
          row[x * sums.channels + channel] += left[static_cast<std::size_t>(channel)];
        }
      }
    }
  });
}

template <class Input, class Sum>
void build_plane(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job, std::int64_t plane,
                 TablePair<Input, Sum>& tables) {
  HostImage<const Input> image = job.image;
  image.data += plane * job.plane_stride;
  const std::int64_t table = plane * job.sums.elements();
  const auto plane_of = [&](Sum* sums) {
    return Plane<Input, Sum>{image, without_zeros(sums + table, job.sums, job.exclusive), job.exclusive};
  };
  Plane<Input, Sum> values = plane_of(job.sums.data);
  tables.has_squares = job.squares != nullptr;
  tables.has_offsets = job.offsets != nullptr;
  const Plane<Input, Sum> squares = tables.has_squares ? plane_of(job.squares) : Plane<Input, Sum>{};
  if constexpr (std::is_same_v<Sum, float>) {
    if (tables.has_offsets)
      std::copy_n(job.offsets + plane * image.channels, image.channels, values.offsets.begin());
  }
  const auto element_bytes = static_cast<std::int64_t>(std::max(sizeof(Input), sizeof(Sum)));
  for (std::int64_t first = 0; first < image.width; first += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, image.width - first);
    tables.values = panel_of(values, first, columns);
    if (tables.has_squares) tables.squares = panel_of(squares, first, columns);
    build_in_bands(executor, image.height, columns * image.channels * element_bytes, tables);
    if (first == 0) continue;
    add_left(executor, tables.values.sums);
    if (tables.has_squares) add_left(executor, tables.squares.sums);
  }
}

void for_each_plane(CpuExecutor& executor, std::int64_t planes,
                    const std::function<void(std::int64_t)>& build) {
  if (planes == 1) return build(0);  // in slices of its own
  parallel_ranges(executor, planes, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t plane = first; plane < end; ++plane) build(plane);
  });
}

template <class Vectors, int C, class Input, class Sum>
void build_planes(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
  for_each_plane(executor, job.planes, [&](std::int64_t plane) {
    Tables<Vectors, C, Input, Sum> tables;
    build_plane(executor, job, plane, tables);
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
  switch (job.image.channels) {
    case 1:
      return build_planes<Vectors, 1>(executor, wide);
    case 2:
      return build_planes<Vectors, 2>(executor, wide);
    case 3:
      return build_planes<Vectors, 3>(executor, wide);
    default:
      return build_planes<Vectors, 4>(executor, wide);
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
#define CUMULUS_BUILD(Input, Sum) \
  template <>                     \
  void CUMULUS_WITHOUT_CUDA(build_summed_area_table, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_BUILD);
template <>
void CUMULUS_WITHOUT_CUDA(average_image, const TableJob<Float16, float, Space::kDevice>&, DeviceSpan<float>);
template <>
void CUMULUS_WITHOUT_CUDA(average_image, const TableJob<float, float, Space::kDevice>&, DeviceSpan<float>);
#endif

#if CUMULUS_WIDE_VECTORS
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

#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/summed_area_table_types.h"

namespace cumulus {
namespace {

using summed_area_table::Accumulator;
using summed_area_table::kBandBytes;
using summed_area_table::kBandRows;
using summed_area_table::summand;
using summed_area_table::Term;

/// Rows whose running sums advance together: their additions do not wait for each other.
constexpr std::int64_t kRowsAtOnce = 4;

/// One image and its table: `sums` holds the inclusive sums, its rows maybe those of a wider table.
template <class Input, class Sum>
struct Plane {
  HostImage<const Input> image;
  HostImage<Sum> sums;
  std::array<Sum, 4> offsets{};
};

/// Writes the last row of the table of rows first..end alone to that row's place.
template <Term kTerm, int C, class Input, class Sum>
void sum_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  constexpr std::int64_t kBlock = 480;  // whole pixels of any kind; its sums stay in the nearest cache
  const std::int64_t elements = plane.image.width * C;
  Sum* last_row = plane.sums.row(end - 1);
  std::array<Sum, C> running{};
  for (std::int64_t x = 0; x < elements; x += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - x);
    std::array<Sum, kBlock> columns{};
    for (std::int64_t y = first; y < end; ++y) {
      const Input* row = plane.image.row(y) + x;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto element = static_cast<std::size_t>(i);
        columns[element] += summand<kTerm>(row[i], plane.offsets[element % C]);
      }
    }
    for (std::int64_t i = 0; i < count; i += C) {
      for (std::size_t channel = 0; channel < C; ++channel) {
        const std::int64_t element = i + static_cast<std::int64_t>(channel);
        running[channel] += columns[static_cast<std::size_t>(element)];
        last_row[x + element] = running[channel];
      }
    }
  }
}

/// Fills rows first..first+R of the table, given the row above them (null: there is none).
template <Term kTerm, int C, int R, class Input, class Sum>
void fill_rows(const Plane<Input, Sum>& plane, std::int64_t first, const Sum* above) {
  std::array<const Input*, R> in;
  std::array<Sum*, R> out;
  for (std::size_t r = 0; r < R; ++r) {
    in[r] = plane.image.row(first + static_cast<std::int64_t>(r));
    out[r] = plane.sums.row(first + static_cast<std::int64_t>(r));
  }
  std::array<std::array<Sum, C>, R> running{};
  for (std::int64_t x = 0; x < plane.image.width * C; x += C) {
    for (std::size_t channel = 0; channel < C; ++channel) {
      const std::int64_t i = x + static_cast<std::int64_t>(channel);
      Sum sum = above != nullptr ? above[i] : Sum{0};
      for (std::size_t r = 0; r < R; ++r) {
        running[r][channel] += summand<kTerm>(in[r][i], plane.offsets[channel]);
        sum += running[r][channel];
        out[r][i] = sum;
      }
    }
  }
}

template <Term kTerm, int C, class Input, class Sum>
void fill_band(const Plane<Input, Sum>& plane, std::int64_t first, std::int64_t end) {
  const auto row_above = [&plane](std::int64_t y) { return y > 0 ? plane.sums.row(y - 1) : nullptr; };
  std::int64_t y = first;
  for (; y + kRowsAtOnce <= end; y += kRowsAtOnce) fill_rows<kTerm, C, kRowsAtOnce>(plane, y, row_above(y));
  for (; y < end; ++y) fill_rows<kTerm, C, 1>(plane, y, row_above(y));
}

/// The tables of one image that are filled together: of its pixels, and maybe of their squares. A band's
/// pixels come from memory once for both.
template <int C, class Input, class Sum>
struct Tables {
  Plane<Input, Sum> values;
  Plane<Input, Sum> squares;
  bool has_squares;
  bool has_offsets;

  void sum(std::int64_t first, std::int64_t end) const {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return sum_band<Term::kOffset, C>(values, first, end);
    }
    sum_band<Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) sum_band<Term::kSquare, C>(squares, first, end);
    }
  }
  void carry(std::int64_t first, std::int64_t end) const {
    if (first == 0) return;
    add_row(values.sums, first - 1, end - 1);
    if (has_squares) add_row(squares.sums, first - 1, end - 1);
  }
  void fill(std::int64_t first, std::int64_t end) const {
    if constexpr (std::is_same_v<Sum, float>) {
      if (has_offsets) return fill_band<Term::kOffset, C>(values, first, end);
    }
    fill_band<Term::kValue, C>(values, first, end);
    if constexpr (kSumsSquares<Input, Sum>) {
      if (has_squares) fill_band<Term::kSquare, C>(squares, first, end);
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
template <int C, class Input, class Sum>
void build_in_bands(CpuExecutor& executor, const Tables<C, Input, Sum>& tables) {
  const HostImage<const Input>& image = tables.values.image;
  const std::int64_t row_bytes = image.width * C * static_cast<std::int64_t>(sizeof(Input));
  const std::int64_t band_rows = std::max(kBandRows, kBandBytes / row_bytes);
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

/// The part of a table below its zero row and to the right of its zero column, which it fills.
template <class Sum>
HostImage<Sum> without_zeros(Sum* table, const HostImage<Sum>& shape, bool exclusive) {
  HostImage<Sum> sums(table, shape.height, shape.width, shape.channels);
  if (!exclusive) return sums;
  std::fill_n(table, sums.row_stride, Sum{0});
  for (std::int64_t y = 1; y < sums.height; ++y) std::fill_n(sums.row(y), sums.channels, Sum{0});
  return {sums.row(1) + sums.channels, sums.height - 1, sums.width - 1, sums.channels, sums.row_stride};
}

template <int C, class Input, class Sum>
void build_plane(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job, std::int64_t plane) {
  HostImage<const Input> image = job.image;
  image.data += plane * job.plane_stride;
  const std::int64_t table = plane * job.sums.elements();
  Tables<C, Input, Sum> tables{{image, without_zeros(job.sums.data + table, job.sums, job.exclusive), {}},
                               {},
                               job.squares != nullptr,
                               job.offsets != nullptr};
  if (tables.has_squares)
    tables.squares = {image, without_zeros(job.squares + table, job.sums, job.exclusive), {}};
  if constexpr (std::is_same_v<Sum, float>) {
    if (tables.has_offsets) std::copy_n(job.offsets + plane * C, C, tables.values.offsets.begin());
  }
  build_in_bands(executor, tables);
}

template <int C, class Input, class Sum>
void build_planes(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
  parallel_ranges(executor, job.planes, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t plane = first; plane < end; ++plane) build_plane<C>(executor, job, plane);
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

template <class Input, class Sum>
void build_summed_area_table(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job) {
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
      return build_planes<1>(executor, wide);
    case 2:
      return build_planes<2>(executor, wide);
    case 3:
      return build_planes<3>(executor, wide);
    default:
      return build_planes<4>(executor, wide);
  }
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

#define CUMULUS_ON_THE_CPU(Input, Sum) \
  template void build_summed_area_table(CpuExecutor&, const TableJob<Input, Sum, Space::kHost>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_ON_THE_CPU);
template void average_image(CpuExecutor&, const TableJob<Float16, float, Space::kHost>&, HostSpan<float>);
template void average_image(CpuExecutor&, const TableJob<float, float, Space::kHost>&, HostSpan<float>);

}  // namespace cumulus

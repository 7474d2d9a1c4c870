#include <oneapi/tbb/parallel_pipeline.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/core/parallel.h"
#include "kernels/summed_area_table/rectangle_sum.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "kernels/summed_area_table/summed_area_table_check.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"

namespace cumulus {
namespace {

using summed_area_table::check_radius;
using summed_area_table::check_views;
using summed_area_table::kBandBytes;
using summed_area_table::kBandRows;
using summed_area_table::kBoxGrainElements;
using summed_area_table::kRectangleGrain;

/// Rows whose running sums advance together: their additions do not wait for each other.
constexpr std::int64_t kRowsAtOnce = 4;

/// Writes the last row of the table of rows first..end alone to `last_row`.
template <int C, class Input, class Sum>
void sum_band(const HostImage<const Input>& image, std::int64_t first, std::int64_t end, Sum* last_row) {
  constexpr std::int64_t kBlock = 480;  // whole pixels of any kind; its sums stay in the nearest cache
  const std::int64_t elements = image.width * C;
  std::array<Sum, C> running{};
  for (std::int64_t x = 0; x < elements; x += kBlock) {
    const std::int64_t count = std::min(kBlock, elements - x);
    std::array<Sum, kBlock> columns{};
    for (std::int64_t y = first; y < end; ++y) {
      const Input* row = image.row(y) + x;
      for (std::int64_t i = 0; i < count; ++i)
        columns[static_cast<std::size_t>(i)] += static_cast<Sum>(row[i]);
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
template <int C, int R, class Input, class Sum>
void fill_rows(const HostImage<const Input>& image, const HostImage<Sum>& sums, std::int64_t first,
               const Sum* above) {
  std::array<const Input*, R> in;
  std::array<Sum*, R> out;
  for (std::size_t r = 0; r < R; ++r) {
    in[r] = image.row(first + static_cast<std::int64_t>(r));
    out[r] = sums.row(first + static_cast<std::int64_t>(r));
  }
  std::array<std::array<Sum, C>, R> running{};
  for (std::int64_t x = 0; x < image.width * C; x += C) {
    for (std::size_t channel = 0; channel < C; ++channel) {
      const std::int64_t i = x + static_cast<std::int64_t>(channel);
      Sum sum = above != nullptr ? above[i] : Sum{0};
      for (std::size_t r = 0; r < R; ++r) {
        running[r][channel] += static_cast<Sum>(in[r][i]);
        sum += running[r][channel];
        out[r][i] = sum;
      }
    }
  }
}

template <int C, class Input, class Sum>
void fill_band(const HostImage<const Input>& image, const HostImage<Sum>& sums, std::int64_t first,
               std::int64_t end) {
  const auto row_above = [&sums](std::int64_t y) { return y > 0 ? sums.row(y - 1) : nullptr; };
  std::int64_t y = first;
  for (; y + kRowsAtOnce <= end; y += kRowsAtOnce) fill_rows<C, kRowsAtOnce>(image, sums, y, row_above(y));
  for (; y < end; ++y) fill_rows<C, 1>(image, sums, y, row_above(y));
}

/// Bands of rows pass through three stages: (1) each band's last row, as if the band were alone;
/// (2) band after band, the last row of the band before is added to it, which makes it final;
/// (3) the band's other rows, below the final last row of the band before.
template <int C, class Input, class Sum>
void build_in_bands(CpuExecutor& executor, const HostImage<const Input>& image, const HostImage<Sum>& sums) {
  const std::int64_t row_bytes = image.width * C * static_cast<std::int64_t>(sizeof(Input));
  const std::int64_t band_rows = std::max(kBandRows, kBandBytes / row_bytes);
  if (image.height <= band_rows) return fill_band<C>(image, sums, 0, image.height);

  using Band = std::pair<std::int64_t, std::int64_t>;
  std::int64_t next_row = 0;
  const auto next_band = [&](oneapi::tbb::flow_control& control) {
    const Band band(next_row, std::min(next_row + band_rows, image.height));
    if (band.first == image.height) control.stop();
    next_row = band.second;
    return band;
  };
  const auto sum = [&](Band band) {
    sum_band<C>(image, band.first, band.second, sums.row(band.second - 1));
    return band;
  };
  const auto carry = [&](Band band) {
    if (band.first == 0) return band;
    const Sum* before = sums.row(band.first - 1);
    Sum* last = sums.row(band.second - 1);
    for (std::int64_t i = 0; i < image.width * C; ++i) last[i] += before[i];
    return band;
  };
  const auto fill = [&](Band band) { fill_band<C>(image, sums, band.first, band.second - 1); };

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

template <class Input, class Sum>
void build(CpuExecutor& executor, const HostImage<const Input>& image, const HostImage<Sum>& sums) {
  check_views(image, sums);
  executor.check_interrupt();
  switch (image.channels) {
    case 1:
      return build_in_bands<1>(executor, image, sums);
    case 2:
      return build_in_bands<2>(executor, image, sums);
    case 3:
      return build_in_bands<3>(executor, image, sums);
    default:
      return build_in_bands<4>(executor, image, sums);
  }
}

/// One row of the box filter: `bottom` is the table's row of the box's last row, `top` the one above
/// its first (null: the box begins at the image's first row).
template <class Sum>
void filter_row(const Sum* bottom, const Sum* top, std::int64_t box_rows, std::int64_t width,
                std::int64_t channels, std::int64_t radius, float* filtered) {
  const auto strip = [=](std::int64_t i) { return top != nullptr ? bottom[i] - top[i] : bottom[i]; };
  const auto mean = [box_rows](Sum sum, std::int64_t box_columns) {
    return static_cast<float>(static_cast<double>(sum) / static_cast<double>(box_rows * box_columns));
  };
  const auto clipped = [&](std::int64_t x) {
    const std::int64_t last = std::min(x + radius, width - 1);
    const std::int64_t before = x - radius - 1;
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      const Sum to_last = strip(last * channels + channel);
      const Sum sum = before >= 0 ? to_last - strip(before * channels + channel) : to_last;
      filtered[x * channels + channel] = mean(sum, last - std::max<std::int64_t>(before, -1));
    }
  };
  const std::int64_t inner_first = std::min(radius + 1, width);
  const std::int64_t inner_end = std::max(inner_first, width - radius);
  for (std::int64_t x = 0; x < inner_first; ++x) clipped(x);
  for (std::int64_t i = inner_first * channels; i < inner_end * channels; ++i) {
    filtered[i] = mean(strip(i + radius * channels) - strip(i - (radius + 1) * channels), 2 * radius + 1);
  }
  for (std::int64_t x = inner_end; x < width; ++x) clipped(x);
}

template <class Sum, class Input>
void filter_with_table_of(CpuExecutor& executor, const HostImage<const Input>& image, std::int64_t radius,
                          const HostImage<float>& filtered) {
  const auto storage = executor.scratch<Sum>(static_cast<std::size_t>(image.elements()));
  const HostImage<Sum> sums(storage.data(), image.height, image.width, image.channels);
  build_summed_area_table(executor, image, sums);
  executor.check_interrupt();
  const std::int64_t grain = std::max<std::int64_t>(1, kBoxGrainElements / (image.width * image.channels));
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      const std::int64_t before = y - radius - 1;
      const std::int64_t last = std::min(y + radius, image.height - 1);
      filter_row(sums.row(last), before >= 0 ? sums.row(before) : nullptr,
                 last - std::max<std::int64_t>(before, -1), image.width, image.channels, radius,
                 filtered.row(y));
    }
  });
}

template <bool kMean, class Sum, class Result>
void query(CpuExecutor& executor, const HostImage<const Sum>& table,
           const HostSpan<const Rectangle>& rectangles, const HostSpan<Result>& results) {
  summed_area_table::check_rectangles(table, rectangles.size(), results.size());
  executor.check_interrupt();
  const auto count = static_cast<std::int64_t>(rectangles.size());
  parallel_ranges(executor, count, kRectangleGrain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      for (std::int64_t channel = 0; channel < table.channels; ++channel) {
        results[static_cast<std::size_t>(i * table.channels + channel)] =
            summed_area_table::rectangle_result<kMean, Result>(table, rectangles[static_cast<std::size_t>(i)],
                                                               channel);
      }
    }
  });
}

}  // namespace

void build_summed_area_table(CpuExecutor& executor, HostImage<const std::uint8_t> image,
                             HostImage<std::uint32_t> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CpuExecutor& executor, HostImage<const std::uint8_t> image,
                             HostImage<std::uint64_t> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CpuExecutor& executor, HostImage<const float> image, HostImage<double> sums) {
  build(executor, image, sums);
}
void build_summed_area_table(CpuExecutor& executor, HostImage<const float> image, HostImage<float> sums) {
  build(executor, image, sums);
}

void filter_box(CpuExecutor& executor, HostImage<const std::uint8_t> image, std::int64_t radius,
                HostImage<float> filtered) {
  check_views(image, filtered);
  check_radius(radius);
  radius = std::min(radius, std::max(image.height, image.width));
  if (summed_area_table::box_sums_fit_32_bits(image.height, image.width, radius)) {
    filter_with_table_of<std::uint32_t>(executor, image, radius, filtered);
  } else {
    filter_with_table_of<std::uint64_t>(executor, image, radius, filtered);
  }
}
void filter_box(CpuExecutor& executor, HostImage<const float> image, std::int64_t radius,
                HostImage<float> filtered) {
  check_views(image, filtered);
  check_radius(radius);
  filter_with_table_of<double>(executor, image, std::min(radius, std::max(image.height, image.width)),
                               filtered);
}

template <class Sum>
void sum_rectangles(CpuExecutor& executor, HostImage<const Sum> table, HostSpan<const Rectangle> rectangles,
                    HostSpan<Sum> sums) {
  query<false>(executor, table, rectangles, sums);
}
template <class Sum>
void average_rectangles(CpuExecutor& executor, HostImage<const Sum> table,
                        HostSpan<const Rectangle> rectangles, HostSpan<double> means) {
  query<true>(executor, table, rectangles, means);
}

template void sum_rectangles(CpuExecutor&, HostImage<const std::uint32_t>, HostSpan<const Rectangle>,
                             HostSpan<std::uint32_t>);
template void sum_rectangles(CpuExecutor&, HostImage<const std::uint64_t>, HostSpan<const Rectangle>,
                             HostSpan<std::uint64_t>);
template void sum_rectangles(CpuExecutor&, HostImage<const float>, HostSpan<const Rectangle>,
                             HostSpan<float>);
template void sum_rectangles(CpuExecutor&, HostImage<const double>, HostSpan<const Rectangle>,
                             HostSpan<double>);
template void average_rectangles(CpuExecutor&, HostImage<const std::uint32_t>, HostSpan<const Rectangle>,
                                 HostSpan<double>);
template void average_rectangles(CpuExecutor&, HostImage<const std::uint64_t>, HostSpan<const Rectangle>,
                                 HostSpan<double>);
template void average_rectangles(CpuExecutor&, HostImage<const float>, HostSpan<const Rectangle>,
                                 HostSpan<double>);
template void average_rectangles(CpuExecutor&, HostImage<const double>, HostSpan<const Rectangle>,
                                 HostSpan<double>);

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
namespace {
[[noreturn]] void no_cuda(const char* call) { throw CudaError(0, call, __FILE__, __LINE__); }
}  // namespace
void build_summed_area_table(CudaExecutor& /*executor*/, DeviceImage<const std::uint8_t> /*image*/,
                             DeviceImage<std::uint32_t> /*sums*/) {
  no_cuda("build_summed_area_table");
}
void build_summed_area_table(CudaExecutor& /*executor*/, DeviceImage<const std::uint8_t> /*image*/,
                             DeviceImage<std::uint64_t> /*sums*/) {
  no_cuda("build_summed_area_table");
}
void build_summed_area_table(CudaExecutor& /*executor*/, DeviceImage<const float> /*image*/,
                             DeviceImage<double> /*sums*/) {
  no_cuda("build_summed_area_table");
}
void build_summed_area_table(CudaExecutor& /*executor*/, DeviceImage<const float> /*image*/,
                             DeviceImage<float> /*sums*/) {
  no_cuda("build_summed_area_table");
}
void filter_box(CudaExecutor& /*executor*/, DeviceImage<const std::uint8_t> /*image*/,
                std::int64_t /*radius*/, DeviceImage<float> /*filtered*/) {
  no_cuda("filter_box");
}
void filter_box(CudaExecutor& /*executor*/, DeviceImage<const float> /*image*/, std::int64_t /*radius*/,
                DeviceImage<float> /*filtered*/) {
  no_cuda("filter_box");
}
template <class Sum>
void sum_rectangles(CudaExecutor& /*executor*/, DeviceImage<const Sum> /*table*/,
                    DeviceSpan<const Rectangle> /*rectangles*/, DeviceSpan<Sum> /*sums*/) {
  no_cuda("sum_rectangles");
}
template <class Sum>
void average_rectangles(CudaExecutor& /*executor*/, DeviceImage<const Sum> /*table*/,
                        DeviceSpan<const Rectangle> /*rectangles*/, DeviceSpan<double> /*means*/) {
  no_cuda("average_rectangles");
}
template void sum_rectangles(CudaExecutor&, DeviceImage<const std::uint32_t>, DeviceSpan<const Rectangle>,
                             DeviceSpan<std::uint32_t>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const std::uint64_t>, DeviceSpan<const Rectangle>,
                             DeviceSpan<std::uint64_t>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const float>, DeviceSpan<const Rectangle>,
                             DeviceSpan<float>);
template void sum_rectangles(CudaExecutor&, DeviceImage<const double>, DeviceSpan<const Rectangle>,
                             DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const std::uint32_t>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const std::uint64_t>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const float>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
template void average_rectangles(CudaExecutor&, DeviceImage<const double>, DeviceSpan<const Rectangle>,
                                 DeviceSpan<double>);
#endif

}  // namespace cumulus

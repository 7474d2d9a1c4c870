#include "kernels/summed_area_table/queries.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"
#include "kernels/core/without_cuda.h"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/cpu/sliding_boxes.h"
#include "kernels/summed_area_table/queries/table_reader.h"
#include "kernels/summed_area_table/summand.h"
#include "kernels/summed_area_table/tuning.h"

namespace cumulus {
namespace {

using namespace summed_area_table;

/// Longer rows are filtered in pieces, so that one takes no longer than a slice may.
constexpr std::int64_t kBoxPiecePixels = 1 << 14;

/// A box filter's job with its tables.
template <class Input, class Sum>
struct Filter {
  const BoxFilterJob<Input, Space::kHost>& job;
  HostImage<Accumulator<Sum>> sums;
  const Sum* squares;  // null: no deviations

  TableShape shape() const { return {sums.height, sums.width, sums.channels, false}; }
};

template <class Sum>
float mean_of(Sum sum, double pixels) {
  return static_cast<float>(static_cast<double>(sum) / pixels);
}

/// One pixel's channels, wherever its box lies.
template <class Input, class Sum>
void filter_pixel(const Filter<Input, Sum>& filter, std::int64_t y, std::int64_t x, std::int64_t radius_x,
                  const StoredWindow& rows) {
  const auto& job = filter.job;
  const StoredWindow columns({x, radius_x, job.image.width, job.box.boundary_x});
  const auto pixels = static_cast<double>(rows.pixels() * columns.pixels());
  const auto* table = reinterpret_cast<const Sum*>(filter.sums.data);
  for (std::int64_t channel = 0; channel < job.image.channels; ++channel) {
    const std::int64_t element = (y * job.image.width + x) * job.image.channels + channel;
    const double sum = sum_of_box(TableReader<Sum>(table, filter.shape(), channel), rows, columns);
    job.means.data[element] = mean_of(sum, pixels);
    if (filter.squares == nullptr) continue;
    const double squares =
        sum_of_box(TableReader<Sum>(filter.squares, filter.shape(), channel), rows, columns);
    job.deviations[element] = static_cast<float>(std::sqrt(variance_of(sum, squares, pixels)));
  }
}

/// The pixels of row y whose boxes begin after the first column and end inside the image, in a loop that
/// vectorises: `bottom` is the table's row of the boxes' last row, `top` the one above their first (null:
/// they begin at the image's first row).
template <class Input, class Sum>
void filter_inner(const Filter<Input, Sum>& filter, std::int64_t y, const StoredWindow& window,
                  std::int64_t first, std::int64_t end) {
  const AxisTerms& rows = window.part(0);
  const std::int64_t channels = filter.job.image.channels;
  const std::int64_t radius = filter.job.box.radius_x;
  const auto pixels = static_cast<double>(window.pixels() * (2 * radius + 1));
  const auto* bottom = filter.sums.row(rows.index[0]);
  float* means = filter.job.means.row(y);
  const auto fill = [&](const auto& strip) {
    for (std::int64_t i = first * channels; i < end * channels; ++i) {
      const auto sum = strip(i + radius * channels) - strip(i - (radius + 1) * channels);
      means[i] = mean_of(static_cast<Sum>(sum), pixels);
    }
  };
  if (rows.count == 1) return fill([=](std::int64_t i) { return bottom[i]; });
  const auto* top = filter.sums.row(rows.index[1]);
  fill([=](std::int64_t i) { return bottom[i] - top[i]; });
}

/// The difference of two of the table's rows, or its first ones.
bool is_plain(const StoredWindow& rows) {
  if (rows.parts() > 1 && rows.part(1).count > 0) return false;
  const AxisTerms& terms = rows.part(0);
  if (terms.count == 0 || terms.count > 2 || terms.weight[0] != 1) return false;
  return terms.count == 1 || terms.weight[1] == -1;
}

/// Pixels first..end of row y.
template <class Input, class Sum>
void filter_row(const Filter<Input, Sum>& filter, std::int64_t y, std::int64_t first, std::int64_t end) {
  const auto& [image, means, deviations, radii, box] = filter.job;
  if (radii != nullptr) {
    for (std::int64_t x = first; x < end; ++x) {
      const float wanted = radii[y * image.width + x];
      const StoredWindow rows({y, mapped_radius(wanted, box.radius_y), image.height, box.boundary_y});
      filter_pixel(filter, y, x, mapped_radius(wanted, box.radius_x), rows);
    }
    return;
  }
  const StoredWindow rows({y, box.radius_y, image.height, box.boundary_y});
  const bool has_inner = is_plain(rows) && deviations == nullptr;
  const std::int64_t inner_first = has_inner ? std::clamp(box.radius_x + 1, first, end) : end;
  const std::int64_t inner_end = std::clamp(image.width - box.radius_x, inner_first, end);
  for (std::int64_t x = first; x < inner_first; ++x) filter_pixel(filter, y, x, box.radius_x, rows);
  if (inner_first < inner_end) filter_inner(filter, y, rows, inner_first, inner_end);
  for (std::int64_t x = inner_end; x < end; ++x) filter_pixel(filter, y, x, box.radius_x, rows);
}

template <class Sum, class Input>
void filter_with_tables(CpuExecutor& executor, const BoxFilterJob<Input, Space::kHost>& job) {
  const auto elements = static_cast<std::size_t>(job.image.elements());
  const auto storage = executor.scratch<Sum>(job.deviations != nullptr ? 2 * elements : elements);
  const auto tables = box_tables(job, storage.data());
  build_summed_area_table(executor, tables);
  executor.check_interrupt();
  using Wide = Accumulator<Sum>;
  const HostImage<Wide> sums(reinterpret_cast<Wide*>(tables.sums.data), job.image.height, job.image.width,
                             job.image.channels);
  const Filter<Input, Sum> filter{job, sums, tables.squares};
  const std::int64_t width = job.image.width;
  const std::int64_t pieces = divide_up(width, kBoxPiecePixels);  // of a row
  const std::int64_t grain = std::max<std::int64_t>(1, kBoxGrainElements / (width * job.image.channels));
  parallel_ranges(executor, job.image.height * pieces, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t begin = i % pieces * kBoxPiecePixels;
      filter_row(filter, i / pieces, begin, std::min(begin + kBoxPiecePixels, width));
    }
  });
}

template <class Input>
bool filter_without_table(CpuExecutor& executor, const BoxFilterJob<Input, Space::kHost>& job) {
  executor.check_interrupt();
  return with_widest_vectors([&]<class Vectors>() { return filter_sliding_boxes<Vectors>(executor, job); });
}

void lower(std::atomic<std::int64_t>& least, std::int64_t value) {
  std::int64_t seen = least.load();
  while (value < seen && !least.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

template <class Sum>
void sum_rectangles(CpuExecutor& executor, const TableView<Sum, Space::kHost>& table,
                    HostSpan<const Rectangle> rectangles, const RectangleResults<Sum, Space::kHost>& results,
                    RectangleReport* report) {
  check_query(table, results);
  executor.check_interrupt();
  const auto count = static_cast<std::int64_t>(rectangles.size());
  const std::int64_t channels = table.shape.channels;
  std::atomic<std::int64_t> outside = count;
  parallel_ranges(executor, count, kRectangleGrain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const Rectangle& rectangle = rectangles[static_cast<std::size_t>(i)];
      if (report != nullptr && !lies_inside(rectangle, table.shape)) lower(outside, i);
      for (std::int64_t channel = 0; channel < channels; ++channel)
        query_rectangle(table, rectangle, channel, i * channels + channel, results);
    }
  });
  if (report != nullptr) report->first_outside = outside < count ? outside.load() : -1;
}

template <class Input>
bool filter_box(CpuExecutor& executor, const BoxFilterJob<Input, Space::kHost>& job) {
  check_filter(job);
  const auto limited = simplified(job);
  if (takes_sliding_boxes(job)) return filter_without_table(executor, limited);
  with_box_sum(limited, [&]<class Sum>(Sum*) { filter_with_tables<Sum>(executor, limited); });
  return false;
}

#if !CUMULUS_WITH_CUDA
#define CUMULUS_RECTANGLES(Sum)                                                                        \
  template <>                                                                                          \
  void CUMULUS_WITHOUT_CUDA(sum_rectangles, const TableView<Sum, Space::kDevice>&,                     \
                            DeviceSpan<const Rectangle>, const RectangleResults<Sum, Space::kDevice>&, \
                            RectangleReport*)
#define CUMULUS_BOXES(Input) \
  template <>                \
  void CUMULUS_WITHOUT_CUDA(filter_box, const BoxFilterJob<Input, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_SUMS(CUMULUS_RECTANGLES);
CUMULUS_SUMMED_AREA_TABLE_IMAGES(CUMULUS_BOXES);
#endif

#define CUMULUS_RECTANGLES_ON_THE_CPU(Sum)                                                                   \
  template void sum_rectangles(CpuExecutor&, const TableView<Sum, Space::kHost>&, HostSpan<const Rectangle>, \
                               const RectangleResults<Sum, Space::kHost>&, RectangleReport*)
#define CUMULUS_BOXES_ON_THE_CPU(Input) \
  template bool filter_box(CpuExecutor&, const BoxFilterJob<Input, Space::kHost>&)
CUMULUS_SUMMED_AREA_TABLE_SUMS(CUMULUS_RECTANGLES_ON_THE_CPU);
CUMULUS_SUMMED_AREA_TABLE_IMAGES(CUMULUS_BOXES_ON_THE_CPU);

}  // namespace cumulus

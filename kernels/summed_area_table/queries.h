#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/summed_area_table/local.h"
#include "kernels/summed_area_table/summed_area_table.h"

namespace cumulus {

// What tables are for. Asynchrony, errors and scratch memory as in summed_area_table.h.

/// The image that a table was made of, and the table's form. The table is dense.
struct TableShape {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  bool exclusive;  // the table has height + 1 rows and width + 1 columns
};

/// A finished table, of one plane.
template <class Sum, Space S>
struct TableView {
  TableShape shape;
  const Sum* sums;
  const Sum* squares = nullptr;    // null: none
  const float* offsets = nullptr;  // of every channel; null: none were subtracted
  /// Of a tile-local table (local.h), whose sums are `local`, inclusive and float; else
  /// null.
  const double* above = nullptr;
  const double* left = nullptr;
};

/// Rows top to bottom - 1, columns left to right - 1.
struct Rectangle {
  std::int32_t top;
  std::int32_t left;
  std::int32_t bottom;
  std::int32_t right;
};

/// Where results go, a null pointer for what is not wanted: [rectangles, channels] each.
template <class Sum, Space S>
struct RectangleResults {
  Sum* sums = nullptr;
  double* means = nullptr;
  double* variances = nullptr;  // the mean of the squares less the square of the mean; needs `squares`
};

struct RectangleReport {
  /// The first rectangle that has no pixels or reaches beyond the image; -1: none does.
  std::int64_t first_outside;
};

/// Sums, means and variances over rectangles, of a table of std::uint32_t, std::uint64_t, std::int64_t, float
/// or double. What of a rectangle lies outside the image counts for nothing; where nothing is left the sum is
/// 0, mean and variance are NaN. Integer sums are exact wherever the sum itself fits, float sums a difference
/// of four elements of the table with three roundings more. Means and variances are computed in double.
///
/// `report`, if not null, is host memory; it holds its answer once executor.synchronize() has returned.
template <class Sum>
void sum_rectangles(CpuExecutor& executor, const TableView<Sum, Space::kHost>& table,
                    HostSpan<const Rectangle> rectangles, const RectangleResults<Sum, Space::kHost>& results,
                    RectangleReport* report);
template <class Sum>
void sum_rectangles(CudaExecutor& executor, const TableView<Sum, Space::kDevice>& table,
                    DeviceSpan<const Rectangle> rectangles,
                    const RectangleResults<Sum, Space::kDevice>& results, RectangleReport* report);

template <Space S>
std::size_t sum_rectangles_scratch_bytes(const RectangleReport* report) {
  return S == Space::kDevice && report != nullptr ? ScratchSize().add<std::int64_t>(1).bytes() : 0;
}

/// What a box sees beyond the image's edge.
enum class Boundary {
  kExact,    // nothing: the mean is over those of its pixels that lie inside
  kZero,     // zeros
  kClamp,    // the edge's pixels: aaa|abcd|ddd
  kRepeat,   // the image again: bcd|abcd|abc
  kReflect,  // its mirror image, the edge's pixels twice: cba|abcd|dcb
  kMirror,   // the same, the edge's pixels once: dcb|abcd|cba
};

struct BoxShape {
  std::int64_t radius_y = 0;  // the box has 2 * radius + 1 pixels along each axis
  std::int64_t radius_x = 0;
  Boundary boundary_y = Boundary::kExact;
  Boundary boundary_x = Boundary::kExact;
};

template <class Input, Space S>
struct BoxFilterJob {
  ImageView<const Input, S> image;
  ImageView<float, S> means;    // dense
  float* deviations = nullptr;  // the standard deviations, laid out as `means`; null: not wanted
  /// [height, width]: half the side of the box at each pixel, rounded to the nearest whole number; negative
  /// and NaN count as 0, and no axis takes more than its radius in `box`. Null: the radii of `box`
  /// everywhere.
  const float* radii = nullptr;
  BoxShape box;
};

/// The mean over the box around each pixel, and the standard deviation (the root of the mean square less the
/// squared mean). Images of every type of summed_area_table.h; of u32 and i32 no deviations.
///
/// Integer images: from exact sums, one division in double, rounded to float: the same bits on both
/// backends. Float images: from a table, or sums that slide, in double, so that |error| is at most 2^-24
/// |mean| plus (4 (height + width) + 4) * 2^-53 * (the sum of |image|) / (the box's pixels), to first order,
/// for boxes that lie inside the image; NaN and Inf spoil every pixel whose box reaches their row and column
/// or lies below and to the right of them; where boxes slide some of those, and on a GPU some to the right,
/// above them, too. A boundary adds as many such errors as the image goes into the box.
///
/// On a CPU it says whether it knows all pixels to be finite: where boxes slide, it looks at the means.
template <class Input>
bool filter_box(CpuExecutor& executor, const BoxFilterJob<Input, Space::kHost>& job);
template <class Input>
void filter_box(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job);

namespace summed_area_table {

/// True where no box sums to more than 32 bits hold: differences of sums modulo 2^32 are then exact.
constexpr bool box_sums_fit_32_bits(std::int64_t height, std::int64_t width, const BoxShape& box) {
  const auto covered = [](std::int64_t extent, std::int64_t radius, Boundary boundary) {
    const bool inside_only = boundary == Boundary::kExact || boundary == Boundary::kZero;
    const std::int64_t side = 2 * radius + 1;
    return inside_only && side > extent ? extent : side;
  };
  constexpr std::int64_t kMaxPixels = 0xFFFFFFFF / 255;
  return covered(height, box.radius_y, box.boundary_y) <=
         kMaxPixels / covered(width, box.radius_x, box.boundary_x);
}

/// Calls body(null pointer) of the type that the box filter sums a job's pixels in.
template <class Input, Space S, class Body>
auto with_box_sum(const BoxFilterJob<Input, S>& job, const Body& body) {
  if constexpr (std::is_same_v<Input, std::uint8_t>) {
    if (job.deviations == nullptr && box_sums_fit_32_bits(job.image.height, job.image.width, job.box))
      return body(static_cast<std::uint32_t*>(nullptr));
    return body(static_cast<std::uint64_t*>(nullptr));
  } else if constexpr (std::is_same_v<Input, std::int32_t>) {
    return body(static_cast<std::int64_t*>(nullptr));
  } else if constexpr (std::is_integral_v<Input>) {
    return body(static_cast<std::uint64_t*>(nullptr));
  } else {
    return body(static_cast<double*>(nullptr));
  }
}

/// Neighbouring pixels of a thread in boxes that slide (queries/sliding_boxes.cuh).
constexpr int sliding_pixels(std::int64_t channels) { return channels == 1 ? 8 : channels == 4 ? 2 : 4; }

/// True where a CPU filters without a table: boxes are not so large that most of the work is to begin them.
template <class Input>
constexpr bool takes_sliding_boxes(const BoxFilterJob<Input, Space::kHost>& job) {
  constexpr std::int64_t kMaxRadius = 64;
  constexpr std::int64_t kMaxExtent = std::int64_t{1} << 30;
  return job.radii == nullptr && job.deviations == nullptr && job.box.radius_y <= kMaxRadius &&
         job.box.radius_x <= 4 * kMaxRadius && job.image.height <= kMaxExtent &&
         job.image.width <= kMaxExtent;
}

/// True where a GPU does.
template <class Input>
constexpr bool takes_sliding_boxes(const BoxFilterJob<Input, Space::kDevice>& job) {
  /// Of the image for each row of the radius: blocks sum the rows of a whole box before they write their
  /// first.
  constexpr std::int64_t kMinElements = std::int64_t{1} << 17;
  constexpr std::int64_t kMaxRadius = 256;
  const auto& [radius_y, radius_x, boundary_y, boundary_x] = job.box;
  if (job.radii != nullptr || job.deviations != nullptr) return false;
  if (radius_y > kMaxRadius || radius_x > 64 * sliding_pixels(job.image.channels)) return false;
  // Two bytes of a pixel leave room for so many in 32 bits.
  if (sizeof(Input) == 2 && std::is_integral_v<Input> &&
      (2 * radius_y + 1) * (2 * radius_x + 1) > 0xFFFFFFFF / 0xFFFF)
    return false;
  return job.image.elements() >= std::max<std::int64_t>(radius_y, 1) * kMinElements &&
         job.image.height <= std::int64_t{1} << 21 &&
         job.image.width * job.image.channels <= std::int64_t{1} << 30;
}

/// The job that makes the box filter's tables, in `storage` (of elements, twice that with deviations).
template <class Sum, class Input, Space S>
TableJob<Input, Sum, S> box_tables(const BoxFilterJob<Input, S>& job, Sum* storage) {
  TableJob<Input, Sum, S> tables;
  tables.image = job.image;
  tables.sums = {storage, job.image.height, job.image.width, job.image.channels};
  if (job.deviations != nullptr) tables.squares = storage + job.image.elements();
  return tables;
}

}  // namespace summed_area_table

/// Scratch bytes of filter_box: its tables, if it takes any, and what building them takes.
template <class Input, Space S>
std::size_t filter_box_scratch_bytes(const BoxFilterJob<Input, S>& job, const DeviceNumbers& device) {
  if (summed_area_table::takes_sliding_boxes(job)) return 0;
  return summed_area_table::with_box_sum(job, [&]<class Sum>(Sum*) {
    const bool squares = job.deviations != nullptr;
    BoxFilterJob<Input, S> means_only = job;
    means_only.deviations = nullptr;
    auto shape = summed_area_table::build_shape(summed_area_table::box_tables<Sum>(means_only, nullptr));
    shape.squares = squares;
    const auto elements = static_cast<std::size_t>(job.image.elements());
    return ScratchSize().add<Sum>(squares ? 2 * elements : elements).bytes() +
           summed_area_table::table_scratch_bytes<S>(shape, device);
  });
}

}  // namespace cumulus

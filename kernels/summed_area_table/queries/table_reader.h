#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/summand.h"

// What both backends do with a finished table: rectangles and boxes, from a few of its elements.

namespace cumulus::summed_area_table {

/// One channel of a table, addressed as if it were inclusive: S(y, x) is the sum over the pixels of rows 0..y
/// and columns 0..x; 0 where either is -1.
template <class Sum>
class TableReader {
 public:
  CUMULUS_HOST_DEVICE TableReader(const Sum* table, const TableShape& shape, std::int64_t channel)
      : table_(table + channel), channels_(shape.channels), exclusive_(shape.exclusive) {
    row_stride_ = (shape.width + (exclusive_ ? 1 : 0)) * channels_;
  }

  CUMULUS_HOST_DEVICE Accumulator<Sum> operator()(std::int64_t y, std::int64_t x) const {
    if (exclusive_) return at(y + 1, x + 1);
    return y < 0 || x < 0 ? Accumulator<Sum>{0} : at(y, x);
  }

 private:
  CUMULUS_HOST_DEVICE Accumulator<Sum> at(std::int64_t y, std::int64_t x) const {
    return static_cast<Accumulator<Sum>>(table_[y * row_stride_ + x * channels_]);
  }

  const Sum* table_;
  std::int64_t row_stride_ = 0;
  std::int64_t channels_;
  bool exclusive_;
};

/// One channel of a tile-local table, likewise, in double.
class LocalTableReader {
 public:
  CUMULUS_HOST_DEVICE LocalTableReader(const float* local, const double* above, const double* left,
                                       const TableShape& shape, std::int64_t channel)
      : local_(local + channel),
        above_(above + channel),
        left_(left + channel),
        width_(shape.width),
        channels_(shape.channels) {}

  CUMULUS_HOST_DEVICE double operator()(std::int64_t y, std::int64_t x) const {
    if (y < 0 || x < 0) return 0;
    const std::int64_t tile_row = y / kLocalTileRows;
    const std::int64_t left_row = tile_row * (kLocalTileRows + 1) + y % kLocalTileRows + 1;
    const std::int64_t left_columns = (width_ - 1) / kLocalTileColumns + 2;  // one for each tile, and zeros
    return above_[(tile_row * (width_ + 1) + x + 1) * channels_] +
           left_[(left_row * left_columns + x / kLocalTileColumns) * channels_] +
           static_cast<double>(local_[(y * width_ + x) * channels_]);
  }

 private:
  const float* local_;
  const double* above_;
  const double* left_;
  std::int64_t width_;
  std::int64_t channels_;
};

/// Rows top..bottom - 1 and columns left..right - 1.
struct Area {
  std::int64_t top;
  std::int64_t left;
  std::int64_t bottom;
  std::int64_t right;

  CUMULUS_HOST_DEVICE std::int64_t pixels() const {
    return bottom > top && right > left ? (bottom - top) * (right - left) : 0;
  }
};

/// What of a rectangle lies inside the image.
CUMULUS_HOST_DEVICE inline Area clip(const Rectangle& rectangle, const TableShape& shape) {
  const auto first = [](std::int64_t edge) { return edge < 0 ? 0 : edge; };
  const auto last = [](std::int64_t edge, std::int64_t extent) { return edge > extent ? extent : edge; };
  return {first(rectangle.top), first(rectangle.left), last(rectangle.bottom, shape.height),
          last(rectangle.right, shape.width)};
}

CUMULUS_HOST_DEVICE inline bool lies_inside(const Rectangle& r, const TableShape& shape) {
  return r.top >= 0 && r.left >= 0 && r.top < r.bottom && r.left < r.right && r.bottom <= shape.height &&
         r.right <= shape.width;
}

/// The difference of a table's four elements: the sum over an area that has pixels.
template <class Reader>
CUMULUS_HOST_DEVICE auto corners_of(const Reader& table, const Area& area) {
  const auto right = table(area.bottom - 1, area.right - 1) - table(area.top - 1, area.right - 1);
  const auto left = table(area.bottom - 1, area.left - 1) - table(area.top - 1, area.left - 1);
  return right - left;
}
template <class Sum>
CUMULUS_HOST_DEVICE Sum sum_over(const TableReader<Sum>& table, const Area& area) {
  return static_cast<Sum>(corners_of(table, area));
}

/// The variance of `pixels` values of which the sum and the sum of squares are known, never below 0.
CUMULUS_HOST_DEVICE inline double variance_of(double sum, double squares, double pixels) {
  const double mean = sum / pixels;
  const double variance = squares / pixels - mean * mean;
  return variance < 0 ? 0 : variance;  // NaN stays
}

/// A rectangle's sum, as the table's type has it and in double.
template <class Sum>
struct RectangleSum {
  Sum stored;
  double wide;
};

template <class Sum, Space S>
CUMULUS_HOST_DEVICE RectangleSum<Sum> sum_of_rectangle(const TableView<Sum, S>& table, const Area& area,
                                                       std::int64_t channel) {
  if (area.pixels() == 0) return {Sum{0}, 0.0};
  if constexpr (std::is_same_v<Sum, float>) {
    if (table.above != nullptr) {
      const LocalTableReader reader(table.sums, table.above, table.left, table.shape, channel);
      const double sum = corners_of(reader, area);
      return {static_cast<float>(sum), sum};
    }
    if (table.offsets != nullptr) {
      const float centered = sum_over(TableReader<Sum>(table.sums, table.shape, channel), area);
      const double sum = static_cast<double>(centered) +
                         static_cast<double>(table.offsets[channel]) * static_cast<double>(area.pixels());
      return {static_cast<float>(sum), sum};
    }
  }
  const Sum sum = sum_over(TableReader<Sum>(table.sums, table.shape, channel), area);
  return {sum, static_cast<double>(sum)};
}

/// Writes what is wanted of one channel of one rectangle.
template <class Sum, Space S>
CUMULUS_HOST_DEVICE void query_rectangle(const TableView<Sum, S>& table, const Rectangle& rectangle,
                                         std::int64_t channel, std::int64_t result,
                                         const RectangleResults<Sum, S>& results) {
  const Area area = clip(rectangle, table.shape);
  const auto pixels = static_cast<double>(area.pixels());
  const bool empty = area.pixels() == 0;
  const RectangleSum<Sum> sum = sum_of_rectangle(table, area, channel);
  if (results.sums != nullptr) results.sums[result] = sum.stored;
  if (results.means != nullptr) results.means[result] = empty ? NAN : sum.wide / pixels;
  if (results.variances == nullptr) return;
  const double squares =
      empty ? 0 : static_cast<double>(sum_over(TableReader<Sum>(table.squares, table.shape, channel), area));
  results.variances[result] = empty ? NAN : variance_of(sum.wide, squares, pixels);
}

/// A sum over a chunk of one axis as a combination of the table's rows, or columns: sum of weight[k] *
/// S(index[k]).
struct AxisTerms {
  static constexpr int kMax = 4;

  std::int64_t index[kMax] = {};
  std::int64_t weight[kMax] = {};
  int count = 0;

  CUMULUS_HOST_DEVICE void add(std::int64_t at, std::int64_t times) {
    if (at < 0 || times == 0) return;
    index[count] = at;
    weight[count++] = times;
  }
};

/// Positions 0..last of an axis that repeats: whole periods, and the first `rest` positions of one more.
struct Periods {
  std::int64_t whole;
  std::int64_t rest;
};
CUMULUS_HOST_DEVICE inline Periods periods_of(std::int64_t last, std::int64_t period) {
  const std::int64_t whole = (last + 1) / period;
  const std::int64_t rest = (last + 1) % period;
  return rest < 0 ? Periods{whole - 1, rest + period} : Periods{whole, rest};
}

/// The sum over positions 0..last of an axis, as a combination of two of the table's rows, or columns. Each
/// term has a place of its own, and weight 0 where it counts for nothing, so that a GPU has them in
/// registers.
struct PrefixTerms {
  static constexpr int kCount = 2;

  std::int64_t index[kCount] = {};
  std::int64_t weight[kCount] = {};

  CUMULUS_HOST_DEVICE void set(int term, std::int64_t at, std::int64_t times) {
    index[term] = at < 0 ? 0 : at;
    weight[term] = at < 0 ? 0 : times;
  }
};

/// Of an axis of `extent` pixels that goes on beyond its ends as `boundary`, which is not kMirror, says; last
/// < -1: less the sum over last + 1..-1.
CUMULUS_HOST_DEVICE inline PrefixTerms prefix_terms(std::int64_t last, std::int64_t extent,
                                                    Boundary boundary) {
  const std::int64_t end = extent - 1;
  const bool reflects = boundary == Boundary::kReflect;
  PrefixTerms terms;
  if (boundary == Boundary::kExact || boundary == Boundary::kZero) {
    terms.set(0, last < end ? last : end, 1);
  } else if (boundary == Boundary::kClamp) {
    const std::int64_t beyond = last > end ? last - end : 0;
    terms.set(0, last < 0 ? 0 : last - beyond, last < 0 ? last + 1 : beyond + 1);
    terms.set(1, end - 1, -beyond);
  } else {
    const Periods periods = periods_of(last, reflects ? 2 * extent : extent);
    const std::int64_t whole = reflects ? 2 * periods.whole : periods.whole;
    const bool is_back = periods.rest > extent;
    terms.set(0, end, is_back ? whole + 2 : whole);
    terms.set(1, is_back ? 2 * extent - periods.rest - 1 : periods.rest - 1, is_back ? -1 : 1);
  }
  return terms;
}

CUMULUS_HOST_DEVICE inline void add_terms(AxisTerms& terms, const PrefixTerms& prefix, std::int64_t sign) {
  for (int k = 0; k < PrefixTerms::kCount; ++k) terms.add(prefix.index[k], sign * prefix.weight[k]);
}

/// The chunk of 2 * radius + 1 positions around `center`, in parts of few terms: a mirror's has up to five,
/// and registers for that many would be held for every boundary.
struct AxisWindow {
  std::int64_t center;
  std::int64_t radius;
  std::int64_t extent;
  Boundary boundary;

  static constexpr int kMaxParts = 2;
  CUMULUS_HOST_DEVICE int parts() const { return boundary == Boundary::kMirror ? kMaxParts : 1; }

  CUMULUS_HOST_DEVICE AxisTerms part(int number) const {
    AxisTerms terms;
    add_part(number, terms);
    return terms;
  }
  CUMULUS_HOST_DEVICE void add_part(int number, AxisTerms& terms) const {
    if (boundary == Boundary::kMirror) {
      add_mirrored(terms, number);
    } else {
      add_terms(terms, upper(), 1);
      add_terms(terms, lower(), -1);
    }
  }

  /// The chunk's sum is that of the prefix `upper` less that of `lower`; not of kMirror.
  CUMULUS_HOST_DEVICE PrefixTerms upper() const { return prefix_terms(center + radius, extent, boundary); }
  CUMULUS_HOST_DEVICE PrefixTerms lower() const {
    return prefix_terms(center - radius - 1, extent, boundary);
  }

  /// That the chunk counts for.
  CUMULUS_HOST_DEVICE std::int64_t pixels() const {
    if (boundary != Boundary::kExact) return 2 * radius + 1;
    const std::int64_t first = center - radius < 0 ? 0 : center - radius;
    const std::int64_t last = center + radius < extent ? center + radius : extent - 1;
    return last - first + 1;
  }

 private:
  /// Of n > 1 positions a period has 2 n - 2 and sums to S(n - 1) + S(n - 2) - S(0); on the way back from
  /// n - 1 the first `rest` of it sum to S(n - 1) + S(n - 2) - S(2 n - 2 - rest). The first part has what
  /// differs from one end of the chunk to the other.
  CUMULUS_HOST_DEVICE void add_mirrored(AxisTerms& terms, int number) const {
    const Periods upper = periods_of(center + radius, 2 * extent - 2);
    const Periods lower = periods_of(center - radius - 1, 2 * extent - 2);
    const std::int64_t periods = upper.whole - lower.whole;
    const bool upper_is_back = upper.rest > extent;
    const bool lower_is_back = lower.rest > extent;
    const std::int64_t turns = periods + (upper_is_back ? 1 : 0) - (lower_is_back ? 1 : 0);
    if (number == 0) {
      terms.add(upper_is_back ? 2 * extent - 2 - upper.rest : upper.rest - 1, upper_is_back ? -1 : 1);
      terms.add(lower_is_back ? 2 * extent - 2 - lower.rest : lower.rest - 1, lower_is_back ? 1 : -1);
    } else {
      terms.add(extent - 1, turns);
      terms.add(extent - 2, turns);
      terms.add(0, -periods);
    }
  }
};

/// A window whose terms were worked out before, for rows that many boxes share.
struct StoredWindow {
  AxisTerms terms[AxisWindow::kMaxParts];
  int count;
  std::int64_t covered;

  CUMULUS_HOST_DEVICE explicit StoredWindow(const AxisWindow& window)
      : count(window.parts()), covered(window.pixels()) {
    for (int i = 0; i < count; ++i) window.add_part(i, terms[i]);
  }
  CUMULUS_HOST_DEVICE int parts() const { return count; }
  CUMULUS_HOST_DEVICE const AxisTerms& part(int number) const { return terms[number]; }
  CUMULUS_HOST_DEVICE std::int64_t pixels() const { return covered; }
};

template <class Sum>
CUMULUS_HOST_DEVICE Accumulator<Sum> sum_of_products(const TableReader<Sum>& table, const AxisTerms& rows,
                                                     const AxisTerms& columns) {
  Accumulator<Sum> sum = 0;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int i = 0; i < AxisTerms::kMax; ++i) {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int j = 0; j < AxisTerms::kMax; ++j) {
      if (i >= rows.count || j >= columns.count) continue;
      const auto weight = static_cast<Accumulator<Sum>>(rows.weight[i] * columns.weight[j]);
      sum += weight * table(rows.index[i], columns.index[j]);
    }
  }
  return sum;
}

/// The sum over a box, given its two windows.
template <class Sum, class Rows, class Columns>
CUMULUS_HOST_DEVICE double sum_of_box(const TableReader<Sum>& table, const Rows& rows,
                                      const Columns& columns) {
  Accumulator<Sum> sum = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (int i = 0; i < rows.parts(); ++i) {
    const AxisTerms& row_terms = rows.part(i);
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
    for (int j = 0; j < columns.parts(); ++j) sum += sum_of_products(table, row_terms, columns.part(j));
  }
  return static_cast<double>(static_cast<Sum>(sum));
}

/// The radius of a map at a pixel: the nearest whole number, from 0 to `most`; NaN is 0.
CUMULUS_HOST_DEVICE inline std::int64_t mapped_radius(float wanted, std::int64_t most) {
  if (!(wanted > 0)) return 0;
  if (wanted >= static_cast<float>(most)) return most;
  return lroundf(wanted);
}

}  // namespace cumulus::summed_area_table

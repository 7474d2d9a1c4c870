#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/core/non_finite.h"
#include "kernels/core/parallel.h"
#include "kernels/core/vector_width.h"
#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/queries/sliding.h"
#include "kernels/summed_area_table/summand.h"

// Box filters without a table: sums of a box's rows for each column slide down the image, and differences of
// their prefix sums along a row are the boxes' sums.

namespace cumulus::summed_area_table {

/// Elements of a piece of a row: its sums stay in a core's nearest caches, some 200 KiB for each thread
/// beside the call's scratch memory.
inline constexpr std::int64_t kSlidingPieceElements = 8192;

/// Rows that boxes slide down at a time. Before the first of them a whole box is summed.
constexpr std::int64_t sliding_segment_rows(std::int64_t radius_y) {
  return std::max<std::int64_t>(64, 2 * (2 * radius_y + 1));
}

/// Columns first..end of the boxes of one segment of rows.
template <class Vectors, class Input>
class SlidingBoxes {
  using Sum = SlidingSum<Input>;
  using Job = BoxFilterJob<Input, Space::kHost>;

 public:
  SlidingBoxes(const Job& job, std::int64_t first, std::int64_t end)
      : job_(job),
        first_(first),
        count_(end - first),
        channels_(job.image.channels),
        radius_x_(job.box.radius_x),
        radius_y_(static_cast<int>(job.box.radius_y)),
        height_(static_cast<int>(job.image.height)),
        positions_(count_ + 2 * radius_x_),
        columns_(static_cast<std::size_t>(positions_ * channels_)),
        prefixes_(static_cast<std::size_t>((positions_ + 1) * channels_)) {
    const std::int64_t left = first_ - radius_x_;
    inside_ = {std::max<std::int64_t>(left, 0), std::min(left + positions_, job.image.width)};
    for (std::int64_t at = left; at < left + positions_; ++at) {
      if (at >= inside_[0] && at < inside_[1]) continue;
      const int seen = seen_at(static_cast<int>(at), static_cast<int>(job.image.width), job.box.boundary_x);
      if (seen >= 0) beyond_.push_back({at - left, seen});
    }
  }

  /// Whether all means so far are: a NaN or an infinity of the image spoils that of its own pixel at least.
  bool all_finite() const { return finite_; }

  /// Rows top..bottom.
  void filter(std::int64_t top, std::int64_t bottom) {
    const auto first = static_cast<int>(top);
    for (int y = first - radius_y_; y < first + radius_y_; ++y) add(row_at(y));
    const Input* leaving = nullptr;
    for (int y = first; y < static_cast<int>(bottom); ++y) {
      slide(leaving, row_at(y + radius_y_));
      leaving = row_at(y - radius_y_);
      sum_along_row();
      write_row(y);
    }
  }

 private:
  /// A position beyond the image's ends, and the column that is seen there.
  struct Beyond {
    std::int64_t position;
    std::int64_t column;
  };

  static Sum value(Input pixel) { return static_cast<Sum>(pixel); }

  /// Null: zeros.
  const Input* row_at(int y) const {
    const int seen = seen_at(y, height_, job_.box.boundary_y);
    return seen < 0 ? nullptr : job_.image.row(seen);
  }

  void add(const Input* row) { slide(nullptr, row); }
  /// Takes one row out of the columns' sums, and another in; null: none.
  void slide(const Input* leaving, const Input* entering) {
    if (leaving != nullptr && entering != nullptr) {
      update([=](std::int64_t i) { return std::array{value(entering[i]), value(leaving[i])}; });
    } else if (entering != nullptr) {
      update([=](std::int64_t i) { return std::array{value(entering[i]), Sum{0}}; });
    } else if (leaving != nullptr) {
      update([=](std::int64_t i) { return std::array{Sum{0}, value(leaving[i])}; });
    }
  }
  /// `terms` gives what is added to an element's column, and what is taken away.
  template <class Terms>
  [[gnu::always_inline]] void update(const Terms& terms) {
    Sum* columns = columns_.data() + (inside_[0] - (first_ - radius_x_)) * channels_;
    const std::int64_t begin = inside_[0] * channels_;
    const std::int64_t count = (inside_[1] - inside_[0]) * channels_;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto [more, less] = terms(begin + i);
      columns[i] = columns[i] - less + more;
    }
    for (const Beyond& beyond : beyond_) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const auto [more, less] = terms(beyond.column * channels_ + c);
        Sum& column = columns_[static_cast<std::size_t>(beyond.position * channels_ + c)];
        column = column - less + more;
      }
    }
  }

  void sum_along_row() {
    switch (channels_) {
      case 1:
        return sum_along_row_of<1>();
      case 2:
        return sum_along_row_of<2>();
      case 3:
        return sum_along_row_of<3>();
      default:
        return sum_along_row_of<4>();
    }
  }
  template <int C>
  void sum_along_row_of() {
    const Sum* columns = columns_.data();
    Sum* prefixes = prefixes_.data() + C;
    std::array<Sum, C> running{};
    for (std::int64_t i = 0; i < positions_ * C; i += C) {
      for (std::size_t c = 0; c < C; ++c) {
        running[c] += columns[i + static_cast<std::int64_t>(c)];
        prefixes[i + static_cast<std::int64_t>(c)] = running[c];
      }
    }
  }

  Sum box_sum(std::int64_t element) const {
    const Sum* prefixes = prefixes_.data() + element;
    return prefixes[(2 * radius_x_ + 1) * channels_] - prefixes[0];
  }
  /// The quotient as IEEE 754 rounds it. Of signed pixels the sum has wrapped around.
  [[gnu::always_inline]] static float mean(Sum sum, double pixels, double reciprocal) {
    using Signed = std::conditional_t<std::is_same_v<Input, std::int32_t>, std::int64_t, Sum>;
    const auto value = static_cast<double>(static_cast<Signed>(sum));
    if constexpr (Vectors::kBytes == PlainVectors::kBytes) {
      return static_cast<float>(value / pixels);
    } else {
      return static_cast<float>(divide_by(value, pixels, reciprocal));
    }
  }

  void write_row(int y) {
    const auto& [radius_y, radius_x, boundary_y, boundary_x] = job_.box;
    const int rows = positions_around(y, radius_y_, height_, boundary_y);
    float* means = job_.means.row(y) + first_ * channels_;
    const std::int64_t width = job_.image.width;
    const bool has_edges = boundary_x == Boundary::kExact;
    const std::int64_t inner = has_edges ? std::clamp(radius_x - first_, std::int64_t{0}, count_) : 0;
    const std::int64_t inner_end = has_edges ? std::clamp(width - radius_x - first_, inner, count_) : count_;
    for (std::int64_t x = 0; x < inner; ++x) write_edge(x, rows, means);
    const double pixels = static_cast<double>(rows) * static_cast<double>(2 * radius_x + 1);
    const double reciprocal = 1.0 / pixels;
    for (std::int64_t i = inner * channels_; i < inner_end * channels_; ++i)
      means[i] = mean(box_sum(i), pixels, reciprocal);
    for (std::int64_t x = inner_end; x < count_; ++x) write_edge(x, rows, means);
    if constexpr (!std::is_integral_v<Input>) {
      finite_ = finite_ && cumulus::all_finite(means, count_ * channels_);
    }
  }
  /// Of a pixel whose box counts fewer columns.
  void write_edge(std::int64_t x, int rows, float* means) const {
    const int columns = positions_around(static_cast<int>(first_ + x), static_cast<int>(radius_x_),
                                         static_cast<int>(job_.image.width), Boundary::kExact);
    const double pixels = static_cast<double>(rows) * columns;
    for (std::int64_t i = x * channels_; i < (x + 1) * channels_; ++i)
      means[i] = mean(box_sum(i), pixels, 1.0 / pixels);
  }

  const Job& job_;
  const std::int64_t first_;
  const std::int64_t count_;
  const std::int64_t channels_;
  const std::int64_t radius_x_;
  const int radius_y_;
  const int height_;
  const std::int64_t positions_;
  std::array<std::int64_t, 2> inside_{};  // the positions that are the image's columns
  std::vector<Beyond> beyond_;
  std::vector<Sum> columns_;   // of each position
  std::vector<Sum> prefixes_;  // of all positions before each
  bool finite_ = true;
};

/// Says whether all means are finite.
template <class Vectors, class Input>
bool filter_sliding_boxes(CpuExecutor& executor, const BoxFilterJob<Input, Space::kHost>& job) {
  std::atomic<bool> finite = true;
  const std::int64_t rows = sliding_segment_rows(job.box.radius_y);
  const std::int64_t columns = kSlidingPieceElements / job.image.channels;
  const std::int64_t pieces = divide_up(job.image.width, columns);
  const std::int64_t segments = divide_up(job.image.height, rows);
  parallel_ranges(executor, segments * pieces, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t left = i % pieces * columns;
      const std::int64_t top = i / pieces * rows;
      Vectors::call([&] {
        SlidingBoxes<Vectors, Input> boxes(job, left, std::min(left + columns, job.image.width));
        boxes.filter(top, std::min(top + rows, job.image.height));
        if (!boxes.all_finite()) finite = false;
      });
    }
  });
  return finite;
}

}  // namespace cumulus::summed_area_table

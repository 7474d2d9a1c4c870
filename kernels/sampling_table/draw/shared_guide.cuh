#pragma once

// A guide of a distribution in a block's shared memory, finer than the table's: the same for all monotone
// methods, since it follows from the lower bounds alone.

#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/core/div.h"
#include "kernels/sampling_table/draw/plans.h"

namespace cumulus::sampling_table {

using sampling::TableHeader;
using sampling::TableView;
using sampling::detail::Cell;
using sampling::detail::Distribution;
using sampling::detail::PlaceInColumn;
using sampling::detail::PlaceInRow;
using sampling::detail::RowBand;

/// Most of what a search does is the same for all points of a guide cell. So a guide of several cells to each
/// of the distribution's holds in shared memory which cell is the first, and two comparisons find the others;
/// where more overlap, they are bisected.
class SharedGuide {
 public:
  static constexpr std::uint32_t kMore = 0x8000;  // set in a guide entry: more than three cells overlap

  /// Fills the block's shared memory, and meets. At most kNarrowCells cells.
  __device__ SharedGuide(const Distribution& global, std::uint32_t cells_each, unsigned char* shared)
      : count_(global.count), guide_size_(global.count * cells_each) {
    auto* const lower = reinterpret_cast<std::uint32_t*>(shared);
    auto* const guide = reinterpret_cast<std::uint16_t*>(lower + count_ + 4);
    lower_ = lower;
    guide_ = guide;
    for (std::uint32_t i = threadIdx.x; i < count_ + 4; i += blockDim.x) {
      lower[i] = sampling::detail::bound_at(global, i);
    }
    __syncthreads();
    for (std::uint32_t g = threadIdx.x; g < guide_size_; g += blockDim.x) guide[g] = entry(g);
    if (threadIdx.x == 0) guide[guide_size_] = static_cast<std::uint16_t>(count_ - 1);
    __syncthreads();
  }

  __device__ std::uint32_t find(std::uint32_t x) const {
    const std::uint32_t g = sampling::detail::guide_cell(guide_size_, x);
    const std::uint32_t entry = guide_[g];
    if ((entry & kMore) != 0)
      return sampling::detail::find_cell(lower_, entry & ~kMore, guide_[g + 1] & ~kMore, x);
    const std::uint32_t key = sampling::detail::search_key(x);
    const std::uint32_t* const after = lower_ + entry;
    return entry + (key >= after[1] ? 1 : 0) + (key >= after[2] ? 1 : 0);
  }
  __device__ std::uint32_t lower(std::uint32_t index) const { return lower_[index]; }

 private:
  /// The least x of guide cell g.
  __device__ std::uint64_t least(std::uint64_t g) const { return divide_up(g << 32, guide_size_); }
  __device__ std::uint16_t entry(std::uint32_t g) const {
    const auto x = static_cast<std::uint32_t>(least(g));
    const std::uint32_t first = sampling::detail::find_cell(lower_, 0, count_ - 1, x);
    const bool more = first + 3 < count_ && lower_[first + 3] < least(g + 1);
    return static_cast<std::uint16_t>(first | (more ? kMore : 0));
  }

  std::uint32_t count_;
  std::uint32_t guide_size_;
  const std::uint32_t* lower_ = nullptr;
  const std::uint16_t* guide_ = nullptr;
};

/// What a sample needs of its row: the reciprocal of its mass, its row_density, and its band, whose extent is
/// negative in the south.
__device__ inline float4 ready_row(const TableHeader& header, const Cell& row) {
  const RowBand band = sampling::detail::BandOfRow{header.projection, header.height}(row.index);
  return make_float4(sampling::detail::reciprocal(sampling::detail::float_of_mass(row.mass)),
                     sampling::detail::row_density(header, band, row.mass), band.begin,
                     band.south ? -band.extent : band.extent);
}
/// Of a negative extent too, as ready_row has it.
__device__ inline RowBand ready_band(float begin, float extent) {
  return {extent < 0.0F, begin, fabsf(extent)};
}

/// The rows of a map, with all that a sample needs of them.
class ReadyRows {
 public:
  __device__ ReadyRows(const TableView& table, unsigned char* shared)
      : values_(reinterpret_cast<float4*>(shared)),
        edges_(reinterpret_cast<std::uint32_t*>(values_ + table.header.height)),
        rows_(filled(table), kRefinement, reinterpret_cast<unsigned char*>(edges_ + table.header.height)) {}

  __device__ PlaceInRow operator()(const TableHeader& /*header*/, std::uint32_t x) const {
    const std::uint32_t y = rows_.find(x);
    const float4 value = values_[y];
    const RowBand band = ready_band(value.z, value.w);
    const std::uint32_t edge = edges_[y];
    return {y, sampling::detail::share_of(band.south ? edge - x : x - edge, 0.5F, value.x), value.y, band};
  }

 private:
  /// The marginal, after the values have been filled; SharedGuide meets.
  __device__ Distribution filled(const TableView& table) const {
    const Distribution rows = sampling::detail::marginal(table);
    for (std::uint32_t y = threadIdx.x; y < rows.count; y += blockDim.x) {
      const Cell row = sampling::detail::cell_at(rows.lower, rows.count, y);
      values_[y] = ready_row(table.header, row);
      const bool south = values_[y].w < 0.0F;
      edges_[y] = south ? row.lower + static_cast<std::uint32_t>(row.mass) - 1 : row.lower;
    }
    return rows;
  }

  float4* values_;
  std::uint32_t* edges_;  ///< Where each row's mass begins to be counted from.
  SharedGuide rows_;
};

/// The rows of a map of so many that little of each fits.
class RefinedRows {
 public:
  __device__ RefinedRows(const TableView& table, const RefinedGuideShape& guide, unsigned char* shared)
      : band_at_{table.header.projection, table.header.height},
        bands_(guide.bands ? reinterpret_cast<float2*>(shared) : nullptr),
        rows_(sampling::detail::marginal(table), guide.cells_each,
              guide.bands ? shared + sizeof(float2) * table.header.height : shared) {
    if (!guide.bands) return;
    for (std::uint32_t y = threadIdx.x; y < table.header.height; y += blockDim.x) {
      const RowBand band = band_at_(y);
      bands_[y] = make_float2(band.begin, band.south ? -band.extent : band.extent);
    }
    __syncthreads();
  }

  __device__ PlaceInRow operator()(const TableHeader& header, std::uint32_t x) const {
    const std::uint32_t y = rows_.find(x);
    const Cell row = sampling::detail::found_between(y, rows_.lower(y), rows_.lower(y + 1));
    const RowBand band = bands_ == nullptr ? band_at_(y) : ready_band(bands_[y].x, bands_[y].y);
    const std::uint32_t before = x - row.lower;
    const std::uint32_t behind = static_cast<std::uint32_t>(row.mass) - 1 - before;
    const float inverse = sampling::detail::reciprocal(sampling::detail::float_of_mass(row.mass));
    return {y, sampling::detail::share_of(band.south ? behind : before, 0.5F, inverse),
            sampling::detail::row_density(header, band, row.mass), band};
  }

 private:
  sampling::detail::BandOfRow band_at_;
  float2* bands_;
  SharedGuide rows_;
};

/// The only row of a table.
class SingleRow {
 public:
  __device__ explicit SingleRow(const TableView& table)
      : lat_long_(table.header.projection == sampling::Projection::kLatLong),
        band_(sampling::detail::BandOfRow{table.header.projection, 1}(0)),
        density_(sampling::detail::row_density(table.header, band_, sampling::kWholeMass)) {}

  __device__ PlaceInRow operator()(const TableHeader& /*header*/, std::uint32_t x) const {
    const sampling::detail::Located row = sampling::detail::locate_in_one(x);
    RowBand band = band_;
    if (lat_long_) band.south = row.rest < row.fraction;  // both poles are this row's
    return {0, band.south ? row.rest : row.fraction, density_, band};
  }

 private:
  bool lat_long_;
  RowBand band_;
  float density_;
};

/// The columns of a single row: the reciprocal of each one's mass, and its share of the row's.
class ReadyColumns {
 public:
  __device__ ReadyColumns(const TableView& table, unsigned char* shared)
      : values_(reinterpret_cast<float2*>(shared)),
        columns_(filled(table), kRefinement, reinterpret_cast<unsigned char*>(values_ + table.header.width)) {
  }

  __device__ PlaceInColumn operator()(std::uint32_t /*y*/, std::uint32_t x) const {
    const std::uint32_t column = columns_.find(x);
    const float2 value = values_[column];
    return {column, sampling::detail::share_of(x - columns_.lower(column), 0.5F, value.x), value.y};
  }

 private:
  __device__ Distribution filled(const TableView& table) const {
    const Distribution columns = sampling::detail::row(table, 0);
    for (std::uint32_t i = threadIdx.x; i < columns.count; i += blockDim.x) {
      const std::uint64_t mass = sampling::detail::cell_at(columns.lower, columns.count, i).mass;
      values_[i] = make_float2(sampling::detail::reciprocal(sampling::detail::float_of_mass(mass)),
                               sampling::detail::share_of_all(mass));
    }
    return columns;
  }

  float2* values_;
  SharedGuide columns_;
};

/// A copy of an alias table over rows, and of their lower bounds.
class AliasRows {
 public:
  __device__ AliasRows(const TableView& table, unsigned char* shared)
      : search_{{sampling::Method::kAlias},
                sampling::detail::marginal(table),
                {table.header.projection, table.header.height}} {
    Distribution& rows = search_.marginal;
    auto* const words = reinterpret_cast<std::uint32_t*>(shared);
    auto* const lower = words + 2 * rows.count;
    for (std::uint32_t i = threadIdx.x; i < 2 * rows.count; i += blockDim.x) {
      words[i] = sampling::detail::element<std::uint32_t>(rows.nodes, i);
    }
    for (std::uint32_t y = threadIdx.x; y < rows.count; y += blockDim.x) lower[y] = rows.lower[y];
    __syncthreads();
    rows.nodes = shared;
    rows.lower = lower;
  }

  __device__ PlaceInRow operator()(const TableHeader& header, std::uint32_t x) const {
    return search_(header, x);
  }

 private:
  sampling::detail::RowSearch<sampling::detail::ByMethod, sampling::detail::BandOfRow> search_;
};

}  // namespace cumulus::sampling_table

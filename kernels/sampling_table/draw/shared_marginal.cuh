#pragma once

// The marginal of a constant table in a block's shared memory: every sample's search begins there.

#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/draw/plans.h"

namespace cumulus::sampling_table {

using sampling::Method;
using sampling::TableHeader;
using sampling::TableView;
using sampling::detail::Cell;
using sampling::detail::Distribution;
using sampling::detail::RowBand;

// --- a copy of the marginal --------------------------------------------------------------------------------

/// The band of a row, from shared memory or computed.
struct SharedBand {
  const float2* bands;  ///< Begin and extent of each row's; null: to be computed.
  sampling::detail::BandOfRow computed;

  __device__ RowBand operator()(std::uint32_t y) const {
    if (bands == nullptr) return computed(y);
    const float2 band = bands[y];
    return {y >= computed.height - y, band.x, band.y};
  }
};
using RowSearch = sampling::detail::RowSearch<SharedBand>;

__device__ inline void copy_to_shared(unsigned char* to, const void* from, std::uint64_t bytes) {
  for (std::uint64_t i = threadIdx.x; i < bytes / 2; i += blockDim.x) {  // an entry may have two bytes
    reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<const std::uint16_t*>(from)[i];
  }
}

__device__ inline RowSearch global_rows(const TableView& table, Method method) {
  return {
      method, sampling::detail::marginal(table), {nullptr, {table.header.projection, table.header.height}}};
}

/// Fills the block's shared memory, and meets.
__device__ inline RowSearch shared_rows(const TableView& table, Method method, const MarginalBytes& bytes,
                                        unsigned char* shared) {
  const TableHeader& header = table.header;
  RowSearch search = global_rows(table, method);
  const Distribution global = search.marginal;
  unsigned char* const guide = shared + bytes.lower;
  unsigned char* const nodes = guide + bytes.guide;
  auto* const bands = reinterpret_cast<float2*>(nodes + bytes.nodes);
  copy_to_shared(shared, global.lower, sizeof(std::uint32_t) * header.height);
  copy_to_shared(guide, global.guide,
                 header.marginal_guide_size * sampling::guide_entry_bytes(header.method, header.height));
  copy_to_shared(nodes, global.nodes, sampling::node_bytes(header.method, header.height));
  if (bytes.bands > 0) {
    for (std::uint32_t y = threadIdx.x; y < header.height; y += blockDim.x) {
      const RowBand band = search.band_at(y);
      bands[y] = make_float2(band.begin, band.extent);
    }
  }
  __syncthreads();
  search.marginal.lower = reinterpret_cast<const std::uint32_t*>(shared);
  search.marginal.guide = guide;
  search.marginal.nodes = nodes;
  search.band_at.bands = bytes.bands > 0 ? bands : nullptr;
  return search;
}

// --- a refined guide of a radix forest's distribution
// -------------------------------------------------------------

/// Most of what a search does is the same for all points of a guide cell. So a guide of four cells to each of
/// the distribution's holds in shared memory which cell is the first, and two comparisons find the others;
/// where more overlap, they are bisected. What else a sample needs of a cell stands ready in a Value.
template <class Value>
class RefinedGuide {
 public:
  static constexpr std::uint32_t kMore = 0x8000;  // set in a guide entry: more than three cells overlap

  /// Fills the block's shared memory, and meets. `value_of(cell)` is a Value. At most kNarrowCells cells.
  template <class ValueOf>
  __device__ RefinedGuide(const Distribution& global, const ValueOf& value_of, unsigned char* shared)
      : global_(global) {
    auto* const values = reinterpret_cast<Value*>(shared);
    auto* const lower = reinterpret_cast<std::uint32_t*>(values + global.count);
    auto* const guide = reinterpret_cast<std::uint16_t*>(lower + global.count + 4);
    for (std::uint32_t i = threadIdx.x; i < global.count; i += blockDim.x) {
      values[i] = value_of(sampling::detail::cell_at(global.lower, global.count, i));
    }
    for (std::uint32_t i = threadIdx.x; i < global.count + 4; i += blockDim.x) {
      lower[i] = sampling::detail::bound_at(global, i);
    }
    for (std::uint32_t g = threadIdx.x; g < global.count * kRefinement; g += blockDim.x) guide[g] = entry(g);
    if (threadIdx.x == 0) guide[global.count * kRefinement] = static_cast<std::uint16_t>(global.count - 1);
    __syncthreads();
    values_ = values;
    lower_ = lower;
    guide_ = guide;
  }

  __device__ std::uint32_t find(std::uint32_t x) const {
    const std::uint32_t g = sampling::detail::guide_cell(global_.count * kRefinement, x);
    const std::uint32_t entry = guide_[g];
    if ((entry & kMore) != 0)
      return sampling::detail::find_cell(lower_, entry & ~kMore, guide_[g + 1] & ~kMore, x);
    const std::uint32_t key = sampling::detail::search_key(x);
    const std::uint32_t* const after = lower_ + entry;
    return entry + (key >= after[1] ? 1 : 0) + (key >= after[2] ? 1 : 0);
  }
  __device__ const Value& value(std::uint32_t index) const { return values_[index]; }
  __device__ std::uint32_t lower(std::uint32_t index) const { return lower_[index]; }

 private:
  /// The least x of guide cell g.
  __device__ std::uint64_t least(std::uint64_t g) const {
    const std::uint64_t guide_size = std::uint64_t{global_.count} * kRefinement;
    return ((g << 32) + guide_size - 1) / guide_size;
  }
  __device__ std::uint16_t entry(std::uint32_t g) const {
    const auto x = static_cast<std::uint32_t>(least(g));
    const std::uint32_t first = sampling::detail::cell_in_forest(Method::kRadixForest, global_, x).index;
    const bool more = first + 3 < global_.count && global_.lower[first + 3] < least(g + 1);
    return static_cast<std::uint16_t>(first | (more ? kMore : 0));
  }

  Distribution global_;
  const Value* values_ = nullptr;
  const std::uint32_t* lower_ = nullptr;
  const std::uint16_t* guide_ = nullptr;
};

/// Of a row: the reciprocal of its mass, its row_density, and its band, whose extent is negative in the
/// south.
struct RowValues {
  const TableHeader& header;
  std::uint32_t* edges;  ///< Where each row's mass begins to be counted from.

  __device__ float4 operator()(const Cell& row) const {
    const RowBand band = sampling::detail::BandOfRow{header.projection, header.height}(row.index);
    edges[row.index] = band.south ? row.lower + static_cast<std::uint32_t>(row.mass) - 1 : row.lower;
    return make_float4(sampling::detail::reciprocal(sampling::detail::float_of_mass(row.mass)),
                       sampling::detail::row_density(header, band, row.mass), band.begin,
                       band.south ? -band.extent : band.extent);
  }
};

/// The rows of a map.
class RefinedRows {
 public:
  __device__ RefinedRows(const TableView& table, unsigned char* shared)
      : edges_(reinterpret_cast<std::uint32_t*>(shared +
                                                refined_guide_bytes(table.header.height, sizeof(float4)))),
        rows_(sampling::detail::marginal(table), RowValues{table.header, edges_}, shared) {}

  __device__ sampling::detail::PlaceInRow operator()(const TableHeader& /*header*/, std::uint32_t x) const {
    const std::uint32_t y = rows_.find(x);
    const float4 value = rows_.value(y);
    const RowBand band{value.w < 0.0F, value.z, fabsf(value.w)};
    const std::uint32_t edge = edges_[y];
    return {y, sampling::detail::share_of(band.south ? edge - x : x - edge, 0.5F, value.x), value.y, band};
  }

 private:
  std::uint32_t* edges_;
  RefinedGuide<float4> rows_;
};

/// Of a column: the reciprocal of its mass, and its share of the row's.
struct ColumnValues {
  __device__ float2 operator()(const Cell& column) const {
    return make_float2(sampling::detail::reciprocal(sampling::detail::float_of_mass(column.mass)),
                       sampling::detail::share_of_all(column.mass));
  }
};

/// The columns of a single row.
class RefinedColumns {
 public:
  __device__ RefinedColumns(const TableView& table, unsigned char* shared)
      : columns_(sampling::detail::row(table, 0), ColumnValues{}, shared) {}

  __device__ sampling::detail::PlaceInColumn operator()(std::uint32_t /*y*/, std::uint32_t x) const {
    const std::uint32_t column = columns_.find(x);
    const float2 value = columns_.value(column);
    return {column, sampling::detail::share_of(x - columns_.lower(column), 0.5F, value.x), value.y};
  }

 private:
  RefinedGuide<float2> columns_;
};

}  // namespace cumulus::sampling_table

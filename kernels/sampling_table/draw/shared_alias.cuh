#pragma once

// An alias table in a block's shared memory.

#include <cstdint>

#include "kernels/sampling_table/draw/shared_guide.cuh"

namespace cumulus::sampling_table {

/// The columns of an alias table over a distribution of more than one cell, and the reciprocals of both parts
/// of each.
class SharedAlias {
 public:
  /// Fills kAliasColumnBytes of shared memory for each cell; the caller meets.
  __device__ SharedAlias(const Distribution& global, unsigned char* shared)
      : count_(global.count),
        inverses_(reinterpret_cast<float2*>(shared)),
        entries_(reinterpret_cast<uint2*>(inverses_ + count_)) {
    for (std::uint32_t k = threadIdx.x; k < count_; k += blockDim.x) {
      const auto entry = sampling::detail::element<sampling::detail::AliasEntry>(global.nodes, k);
      const std::uint64_t own = entry.split * count_;
      entries_[k] = make_uint2(entry.split, entry.alias);
      inverses_[k] = make_float2(inverse(own), inverse(sampling::kWholeMass - own));
    }
  }

  __device__ sampling::detail::AliasPlace find(std::uint32_t x) const {
    const std::uint32_t column = sampling::detail::guide_cell(count_, x);
    const uint2 entry = entries_[column];
    const float2 inverses = inverses_[column];
    return sampling::detail::place_in_column(
        count_, column, {entry.x, entry.y}, x,
        [&](bool own, std::uint64_t /*part*/) { return own ? inverses.x : inverses.y; });
  }

 private:
  __device__ static float inverse(std::uint64_t part) {
    return sampling::detail::reciprocal(sampling::detail::float_of_mass(part));
  }

  std::uint32_t count_;
  float2* inverses_;
  uint2* entries_;
};

/// The rows of a map, with all that a sample needs of them.
class ReadyAliasRows {
 public:
  __device__ ReadyAliasRows(const TableView& table, unsigned char* shared)
      : rows_(sampling::detail::marginal(table), shared),
        densities_(reinterpret_cast<float*>(shared + kAliasColumnBytes * table.header.height)),
        band_begins_(densities_ + table.header.height),
        band_extents_(band_begins_ + table.header.height) {
    const Distribution rows = sampling::detail::marginal(table);
    for (std::uint32_t y = threadIdx.x; y < rows.count; y += blockDim.x) {
      const float4 value = ready_row(table.header, sampling::detail::cell_at(rows.lower, rows.count, y));
      densities_[y] = value.y;
      band_begins_[y] = value.z;
      band_extents_[y] = value.w;
    }
    __syncthreads();
  }

  __device__ PlaceInRow operator()(const TableHeader& /*header*/, std::uint32_t x) const {
    const sampling::detail::AliasPlace row = rows_.find(x);
    const RowBand band = ready_band(band_begins_[row.index], band_extents_[row.index]);
    return {row.index, band.south ? row.rest : row.fraction, densities_[row.index], band};
  }

 private:
  SharedAlias rows_;
  float* densities_;
  float* band_begins_;
  float* band_extents_;
};

/// A copy of the table over rows, and of their lower bounds.
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

/// The columns of a single row, and their shares of its mass.
class ReadyAliasColumns {
 public:
  __device__ ReadyAliasColumns(const TableView& table, unsigned char* shared)
      : columns_(sampling::detail::row(table, 0), shared),
        shares_(reinterpret_cast<float*>(shared + kAliasColumnBytes * table.header.width)) {
    const Distribution columns = sampling::detail::row(table, 0);
    for (std::uint32_t i = threadIdx.x; i < columns.count; i += blockDim.x) {
      shares_[i] =
          sampling::detail::share_of_all(sampling::detail::cell_at(columns.lower, columns.count, i).mass);
    }
    __syncthreads();
  }

  __device__ PlaceInColumn operator()(std::uint32_t /*y*/, std::uint32_t x) const {
    const sampling::detail::AliasPlace column = columns_.find(x);
    return {column.index, column.fraction, shares_[column.index]};
  }

 private:
  SharedAlias columns_;
  float* shares_;
};

}  // namespace cumulus::sampling_table

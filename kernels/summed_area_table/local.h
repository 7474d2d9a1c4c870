#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/summed_area_table/summed_area_table.h"

namespace cumulus {

// Tile-local tables: float sums that stay small, because each begins in its own tile of the image, on top of
// bases in double. With tiles of kLocalTileRows x kLocalTileColumns pixels,
//
//   S(y, x) = above(I, x + 1) + left(I, y - y0 + 1, J) + local(y, x)
//
// where I = y / kLocalTileRows, J = x / kLocalTileColumns and y0 = I * kLocalTileRows: `above` is the sum
// over all rows above the tile's, `left` that over the rows y0..y left of the tile, `local` that over the
// tile's own pixels. |error| of `local` is at most (kLocalTileRows + kLocalTileColumns) * 2^-24 * (the sum of
// |image| over the tile), and that of the bases as of tables in double.

inline constexpr std::int64_t kLocalTileRows = 64;
inline constexpr std::int64_t kLocalTileColumns = 128;

constexpr std::int64_t local_tile_rows(std::int64_t height) { return divide_up(height, kLocalTileRows); }
constexpr std::int64_t local_tile_columns(std::int64_t width) { return divide_up(width, kLocalTileColumns); }
/// Elements of `above`: [tile rows + 1, width + 1, channels], an exclusive table.
constexpr std::int64_t local_above_elements(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return (local_tile_rows(height) + 1) * (width + 1) * channels;
}
/// Elements of `left`: [tile rows, kLocalTileRows + 1, tile columns + 1, channels], an exclusive table for
/// each row of tiles.
constexpr std::int64_t local_left_elements(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return local_tile_rows(height) * (kLocalTileRows + 1) * (local_tile_columns(width) + 1) * channels;
}

template <class Input, Space S>
struct LocalTableJob {
  ImageView<const Input, S> image;
  ImageView<float, S> local;  // dense, of the image's extents
  double* above = nullptr;
  double* left = nullptr;
};

/// Of Float16 and float images. Asynchrony, errors and scratch memory as in summed_area_table.h.
template <class Input>
void build_local_summed_area_table(CpuExecutor& executor, const LocalTableJob<Input, Space::kHost>& job);
template <class Input>
void build_local_summed_area_table(CudaExecutor& executor, const LocalTableJob<Input, Space::kDevice>& job);

namespace summed_area_table {

/// What is known of each tile by itself: the sums of its columns and of its rows, in double, and where their
/// tables go.
template <Space S>
struct TileSums {
  TableJob<double, double, S> columns;  // [tile rows, width, channels] -> above
  TableJob<double, double, S> rows;     // [tile rows][kLocalTileRows, tile columns, channels] -> left
};

template <class Input, Space S>
TileSums<S> tile_sums(const LocalTableJob<Input, S>& job, double* columns, double* rows) {
  const auto& image = job.image;
  const std::int64_t tile_rows = local_tile_rows(image.height);
  const std::int64_t tile_columns = local_tile_columns(image.width);
  TileSums<S> sums;
  sums.columns.image = ImageView<const double, S>(columns, tile_rows, image.width, image.channels);
  sums.columns.sums = {job.above, tile_rows + 1, image.width + 1, image.channels};
  sums.columns.exclusive = true;
  sums.rows.image = ImageView<const double, S>(rows, kLocalTileRows, tile_columns, image.channels);
  sums.rows.sums = {job.left, kLocalTileRows + 1, tile_columns + 1, image.channels};
  sums.rows.planes = tile_rows;
  sums.rows.plane_stride = sums.rows.image.elements();
  sums.rows.exclusive = true;
  return sums;
}

}  // namespace summed_area_table

template <class Input, Space S>
std::size_t build_local_summed_area_table_scratch_bytes(const LocalTableJob<Input, S>& job,
                                                        const DeviceNumbers& device) {
  const auto sums = summed_area_table::tile_sums(job, nullptr, nullptr);
  return ScratchSize()
             .add<double>(static_cast<std::size_t>(sums.columns.image.elements()))
             .add<double>(static_cast<std::size_t>(sums.rows.planes * sums.rows.plane_stride))
             .bytes() +
         build_summed_area_table_scratch_bytes(sums.columns, device) +
         build_summed_area_table_scratch_bytes(sums.rows, device);
}

}  // namespace cumulus

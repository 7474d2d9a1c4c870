#pragma once

#include <cstdint>

#include "kernels/summed_area_table/look_back/traits.cuh"
#include "kernels/summed_area_table/summed_area_table.h"

// A job as the kernels see it.

namespace cumulus::summed_area_table {

/// Describes an array; its channels are planes of their own where the kernel takes one channel at a time.
template <class P, class T, class View>
Planes<T, P::kLayout> planes_of(T* data, const View& view, std::int64_t plane_stride) {
  const std::int64_t parts = P::kChannels == view.channels ? 1 : view.channels;
  const bool aligned = parts == 1 && rows_are_aligned(data, view.row_stride) &&
                       plane_stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
  return {data, plane_stride, view.row_stride, parts, aligned};
}

/// All but tickets and words.
template <class P, class Job>
Arguments<P> arguments_of(const Job& job, std::int64_t planes, std::int64_t tile_rows,
                          std::int64_t tile_columns) {
  using Sum = typename P::Sum;
  const std::int64_t zeros = job.exclusive ? job.sums.row_stride + job.sums.channels : 0;
  const auto table = [&](auto* data) {
    return planes_of<P>(data == nullptr ? nullptr : reinterpret_cast<Sum*>(data) + zeros, job.sums,
                        job.sums.elements());
  };
  return {.image = planes_of<P>(job.image.data, job.image, job.plane_stride),
          .sums = table(job.sums.data),
          .squares = table(job.squares),
          .offsets = job.offsets,
          .height = job.image.height,
          .row_elements = job.image.width * P::kChannels,
          .planes = static_cast<std::uint32_t>(planes),
          .tile_rows = static_cast<std::uint32_t>(tile_rows),
          .tile_columns = static_cast<std::uint32_t>(tile_columns),
          .words_per_tile = 0,
          .next_ticket = nullptr,
          .words = nullptr,
          .exclusive = job.exclusive};
}

}  // namespace cumulus::summed_area_table

#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/summed_area_table/look_back/look_back.h"

// Tables of bytes in panels of whole rows (row_panels/build.cuh), one for each multiprocessor, which stay
// there from reading to writing: one inclusive table of one channel.

namespace cumulus::summed_area_table {

constexpr bool has_row_panels(ElementPair types) {
  return types == ElementPair{ElementType::kUint8, ElementType::kUint32};
}

struct RowPanelsPlan {
  PanelShape panel;  // kNarrowPanelShape or kWidePanelShape
  std::int64_t panels;
  std::int64_t panel_rows;  // the last one may have fewer

  static std::size_t scratch_bytes() { return 0; }
};

constexpr RowPanelsPlan plan_row_panels(const BuildShape& shape, int multiprocessors) {
  const std::int64_t rows = divide_up(shape.height, multiprocessors);
  return {shape.width <= kNarrowPanelShape.columns() ? kNarrowPanelShape : kWidePanelShape,
          divide_up(shape.height, rows), rows};
}

/// Of a block: PanelMemory (row_panels/traits.cuh).
constexpr std::size_t shared_bytes(const PanelShape& panel) {
  constexpr std::size_t kWord = 4;
  const int through = kPanelRows / 2 * panel.columns() / 4;
  const int totals = kPanelRows * (panel.all_segments() + 1);
  const int groups = kPanelGroups * (panel.part_columns() + 1);
  const int words = through + totals + groups + panel.all_segments();
  return divide_up(static_cast<std::size_t>(words) * kWord, std::size_t{16}) * 16;
}

void build_in_row_panels(CudaExecutor& executor,
                         const TableJob<std::uint8_t, std::uint32_t, Space::kDevice>& job,
                         const RowPanelsPlan& plan);

}  // namespace cumulus::summed_area_table

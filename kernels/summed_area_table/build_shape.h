#pragma once

#include <cstdint>

#include "kernels/summed_area_table/element_pairs.h"

namespace cumulus::summed_area_table {

/// What of a job decides how its table is built on a GPU.
struct BuildShape {
  ElementPair types;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;
  std::int64_t planes = 1;
  bool exclusive = false;
  bool squares = false;
  bool offsets = false;
  bool aligned = true;  // all rows of images and tables begin at multiples of 16 bytes
};

}  // namespace cumulus::summed_area_table

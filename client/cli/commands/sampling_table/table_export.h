#pragma once

#include <absl/status/status.h>

#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// As what a table is written. docs/operations/sampling_table_format.md lists the arrays of each.
enum class TableFormat {
  kCst,      ///< as it is
  kNpz,      ///< the distributions as plain NumPy arrays of float64
  kPbrt,     ///< the members of pbrt-v4's PiecewiseConstant2D, float32, as .npz
  kMitsuba,  ///< what Mitsuba 3's DiscreteDistribution2D is made of, float32, as .npz
};

/// Writes a table (uint8 [bytes], its header checked) as arrays that others read. UNIMPLEMENTED for a table
/// of several layers.
absl::Status export_table(const std::string& path, const ArrayView& table, TableFormat format);

}  // namespace cumulus::cli

#pragma once

#include <cstddef>

#include "kernels/core/views.h"
#include "kernels/sampling_table/format/records.h"
#include "kernels/sampling_table/weights/weights.h"

// The arguments of kernels that build rows and marginals.
namespace cumulus::sampling_table {

template <class T>
struct RowsArguments {
  DeviceImage<const T> weights;
  WeightRule rule;
  sampling::TableHeader header;
  std::byte* table;
  RowMass* row_masses;
  const WeightAdjustment* adjustments;  // null: weights stay as they are
  BuildFindings* findings;
};

struct MarginalsArguments {
  sampling::TableHeader header;
  std::byte* table;
  const RowMass* row_masses;  // all bits are set before the rows' kernel publishes them
  BuildFindings* findings;
  bool early;  ///< The kernel before it on the stream is that of the rows, and may still run.
};

}  // namespace cumulus::sampling_table

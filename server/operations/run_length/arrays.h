#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cumulus/v1/run_length.pb.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/transpose/transpose.h"
#include "server/pipeline/operation.h"

// What requests to encode and to decode have in common.

namespace cumulus::server::ops {

/// The unit of runs: an element of the array, or a pixel, whose channels are the last extent.
struct RunUnit {
  v1::ElementType type = v1::ELEMENT_TYPE_UNSPECIFIED;
  std::int64_t channels = 1;
  bool pixels = false;

  int bytes() const { return static_cast<int>(static_cast<std::int64_t>(element_size(type)) * channels); }
  /// An array of so many of them.
  ArrayShape array(std::int64_t count) const {
    if (pixels) return {type, {count, channels}};
    return {type, {count}};
  }

  static absl::StatusOr<RunUnit> read(const InputArray& input, bool pixels);
};

/// An array of the request's field `field`, of `unit`s.
struct UnitArray {
  std::string_view field;
  const ArrayShape& shape;
  const RunUnit& unit;

  /// What a row has of them.
  std::int64_t row_elements() const;
  /// The array as images, [..., height, width], of the unit's pixels.
  absl::StatusOr<ImageBatch> images() const;
};

absl::StatusOr<RunLengthForm> read_run_length_form(v1::RunLengthForm form);

/// The images where the order is that of columns, nothing where it is that of rows.
absl::StatusOr<std::optional<ImageBatch>> read_run_order(v1::RunOrder order, const UnitArray& array);

/// Scratch memory for the array in the other order.
std::size_t turned_bytes(const std::optional<ImageBatch>& by_columns);

}  // namespace cumulus::server::ops

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cumulus/v1/run_length.pb.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/transpose/transpose.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/operation.h"
#include "server/pipeline/text.h"

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

  static absl::StatusOr<RunUnit> read(const InputArray& input, bool pixels) {
    RunUnit unit{input.shape.type, 1, pixels};
    if (!pixels) return unit;
    const auto& extents = input.shape.extents;
    if (extents.size() < 2) {
      return bad_field(input.field, concat("is ", input.shape.text(),
                                           "; pixels have at least two extents, the last for "
                                           "the channels"));
    }
    unit.channels = extents.back();
    if (unit.channels < 1 || unit.channels > 4) {
      return bad_field(input.field, concat("has pixels of ", unit.channels, " channels; 1 to 4 is right"));
    }
    if (unit.bytes() > 16) {
      return bad_field(input.field, concat("has pixels of ", unit.bytes(), " bytes; at most 16 is right"));
    }
    return unit;
  }
};

inline absl::StatusOr<RunLengthForm> read_run_length_form(v1::RunLengthForm form) {
  switch (form) {
    case v1::RUN_LENGTH_FORM_UNSPECIFIED:
    case v1::RUN_COUNTS:
      return RunLengthForm::kCounts;
    case v1::RUN_ENDS:
      return RunLengthForm::kEnds;
    default:
      return bad_field("form", concat("is ", static_cast<int>(form), "; RUN_COUNTS or RUN_ENDS is right"));
  }
}

/// What a row has of them.
inline std::int64_t row_elements(const ArrayShape& shape, const RunUnit& unit) {
  const std::size_t from_last = unit.pixels ? 2 : 1;
  return shape.extents.size() < from_last ? 1 : shape.extents[shape.extents.size() - from_last];
}

/// The array as images, [..., height, width], of the unit's pixels.
inline absl::StatusOr<ImageBatch> read_image_batch(std::string_view field, const ArrayShape& shape,
                                                   const RunUnit& unit) {
  const std::size_t extents = shape.extents.size() - (unit.pixels ? 1 : 0);
  if (extents < 2) {
    return bad_field(field, concat("is ", shape.text(), "; images are [..., height, width]",
                                   unit.pixels ? ", and then the channels of their pixels" : ""));
  }
  ImageBatch batch{unit.bytes(), 1, shape.extents[extents - 2], shape.extents[extents - 1]};
  for (std::size_t i = 0; i + 2 < extents; ++i) batch.images *= shape.extents[i];
  return batch;
}

/// Sets `by_columns` where the order is that of columns.
inline absl::Status read_run_order(v1::RunOrder order, std::string_view field, const ArrayShape& shape,
                                   const RunUnit& unit, std::optional<ImageBatch>& by_columns) {
  switch (order) {
    case v1::RUN_ORDER_UNSPECIFIED:
    case v1::BY_ROWS:
      return absl::OkStatus();
    case v1::BY_COLUMNS:
      break;
    default:
      return bad_field("order", concat("is ", static_cast<int>(order), "; BY_ROWS or BY_COLUMNS is right"));
  }
  const auto batch = read_image_batch(field, shape, unit);
  if (!batch.ok()) return batch.status();
  by_columns = *batch;
  return absl::OkStatus();
}

/// Scratch memory for the array in the other order.
inline std::size_t turned_bytes(const std::optional<ImageBatch>& by_columns) {
  return by_columns.has_value() ? ScratchSize().add<std::byte>(by_columns->bytes()).bytes() : 0;
}

}  // namespace cumulus::server::ops

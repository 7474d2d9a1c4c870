#include "server/operations/run_length/arrays.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {

absl::StatusOr<RunUnit> RunUnit::read(const InputArray& input, bool pixels) {
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

std::int64_t UnitArray::row_elements() const {
  const std::size_t from_last = unit.pixels ? 2 : 1;
  return shape.extents.size() < from_last ? 1 : shape.extents[shape.extents.size() - from_last];
}

absl::StatusOr<ImageBatch> UnitArray::images() const {
  const std::size_t extents = shape.extents.size() - (unit.pixels ? 1 : 0);
  if (extents < 2) {
    return bad_field(field, concat("is ", shape.text(), "; images are [..., height, width]",
                                   unit.pixels ? ", and then the channels of their pixels" : ""));
  }
  ImageBatch batch{unit.bytes(), 1, shape.extents[extents - 2], shape.extents[extents - 1]};
  for (std::size_t i = 0; i + 2 < extents; ++i) batch.images *= shape.extents[i];
  return batch;
}

absl::StatusOr<RunLengthForm> read_run_length_form(v1::RunLengthForm form) {
  return read_enum<RunLengthForm>("form", form,
                                  {{v1::RUN_LENGTH_FORM_UNSPECIFIED, RunLengthForm::kCounts},
                                   {v1::RUN_COUNTS, RunLengthForm::kCounts},
                                   {v1::RUN_ENDS, RunLengthForm::kEnds}});
}

absl::StatusOr<std::optional<ImageBatch>> read_run_order(v1::RunOrder order, const UnitArray& array) {
  const auto columns = read_enum<bool>(
      "order", order, {{v1::RUN_ORDER_UNSPECIFIED, false}, {v1::BY_ROWS, false}, {v1::BY_COLUMNS, true}});
  if (!columns.ok()) return columns.status();
  if (!*columns) return std::optional<ImageBatch>();
  const auto images = array.images();
  if (!images.ok()) return images.status();
  return std::optional<ImageBatch>(*images);
}

std::size_t turned_bytes(const std::optional<ImageBatch>& by_columns) {
  return by_columns.has_value() ? ScratchSize().add<std::byte>(by_columns->bytes()).bytes() : 0;
}

}  // namespace cumulus::server::ops

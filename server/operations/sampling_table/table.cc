#include "server/operations/sampling_table/table.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {

absl::Status read_table_header(const InputArray& table, sampling::TableHeader& header) {
  if (table.shape.type != v1::UINT8 || table.shape.extents.size() != 1) {
    return bad_field(table.field, concat("is ", table.shape.text(),
                                         "; a table is UINT8 [bytes], a result of BuildSamplingTable"));
  }
  const auto error =
      sampling::parse_header(table.head.data(), table.head.size(), table.shape.bytes(), header);
  if (error != sampling::TableError::kNone) return bad_field(table.field, sampling::describe(error));
  return absl::OkStatus();
}

absl::Status check_layer(std::uint32_t layer, const sampling::TableHeader& header) {
  if (layer < header.layers) return absl::OkStatus();
  return bad_field("layer", concat("is ", layer, "; the table has ", header.layers,
                                   header.layers == 1 ? " layer" : " layers", ", counted from 0"));
}

}  // namespace cumulus::server::ops

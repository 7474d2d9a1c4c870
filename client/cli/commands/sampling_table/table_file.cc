#include "cli/commands/sampling_table/table_file.h"

#include <absl/strings/str_cat.h>

#include <cstring>

#include "cli/files/input.h"
#include "cli/files/output.h"
#include "library/table_checksum.h"

namespace cumulus::cli {
namespace {

absl::Status bad_table(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is no sampling table: ", what, "; make one with cumulus sampling-table"));
}

}  // namespace

absl::StatusOr<sampling::TableHeader> table_header(const ArrayView& table) {
  sampling::TableHeader header;
  const auto bytes = table.bytes();
  const sampling::TableError error = sampling::parse_header(bytes.data(), bytes.size(), bytes.size(), header);
  if (error != sampling::TableError::kNone) return absl::InvalidArgumentError(sampling::describe(error));
  return header;
}

absl::Status write_table(const std::string& path, const ArrayView& table) {
  absl::StatusOr<Array> copy = Array::allocate(table.type(), table.shape());
  if (!copy.ok()) return copy.status();
  std::memcpy(copy->mutable_bytes().data(), table.bytes().data(), table.bytes().size());
  set_table_checksum(copy->mutable_bytes());
  OutputFile file(path);
  file.expect(static_cast<std::int64_t>(copy->bytes().size()));
  file.write(copy->bytes());
  return file.commit();
}

absl::StatusOr<Array> read_table(const std::string& path) {
  absl::StatusOr<Array> table = read_file(path);
  if (!table.ok()) return table;
  const absl::StatusOr<sampling::TableHeader> header = table_header(table->view());
  if (!header.ok()) return bad_table(path, std::string(header.status().message()));
  if (take_table_checksum(table->mutable_bytes()) != header->crc32c) {
    return bad_table(path, "its bytes do not match the crc32c in its header");
  }
  return table;
}

}  // namespace cumulus::cli

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "cumulus/cumulus.h"
#include "cumulus/table_format.h"
#include "library/c/handles.h"
#include "library/table_checksum.h"

namespace cumulus::c {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status cannot_write(const std::string& path) {
  return absl::UnknownError(
      absl::StrCat(path, " cannot be written; its folder has to exist, be writable and have room"));
}

absl::Status write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return cannot_write(path);
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  const bool closed = std::fclose(file.release()) == 0;
  return written && closed ? absl::OkStatus() : cannot_write(path);
}

absl::Status set_checksum(Array& table) {
  sampling::TableHeader header;
  const std::span<std::byte> bytes = table.mutable_bytes();
  const sampling::TableError error = sampling::parse_header(bytes.data(), bytes.size(), bytes.size(), header);
  if (error != sampling::TableError::kNone) return absl::InvalidArgumentError(sampling::describe(error));
  set_table_checksum(bytes);
  return absl::OkStatus();
}

Outcome save(const cumulus_connection& connection, const Buffer& buffer, const std::string& path) {
  if (buffer.type() != ElementType::kUint8) {
    return refuse("table", "is no sampling table; cumulus_build_sampling_table makes one");
  }
  absl::StatusOr<Array> table = connection.session.download(buffer);
  if (!table.ok()) return table.status();
  if (absl::Status known = set_checksum(*table); !known.ok()) return {known, "table"};
  const std::string partial = path + ".partial";
  absl::Status written = write_bytes(partial, table->bytes());
  std::error_code error;
  if (written.ok()) std::filesystem::rename(partial, path, error);
  if (written.ok() && error) written = cannot_write(path);
  std::error_code ignored;
  if (!written.ok()) std::filesystem::remove(partial, ignored);
  return written;
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_save_sampling_table(cumulus_connection* connection, const cumulus_buffer* table,
                                         const char* path, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"connection", connection}, {"table", table}, {"path", path}});
    return given.ok() ? cumulus::c::save(*connection, table->buffer, path) : given;
  });
}

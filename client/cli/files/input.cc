#include "cli/files/input.h"

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cumulus::cli {

absl::Status refuse_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a folder; name a file"));
}

absl::StatusOr<Array> read_file(const std::string& path) {
  if (absl::Status file = refuse_folder(path); !file.ok()) return file;
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", error.message(), "; name a file that exists"));
  }
  absl::StatusOr<Array> bytes = Array::allocate(ElementType::kUint8, {static_cast<std::int64_t>(size)});
  if (!bytes.ok()) return bytes;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::PermissionDeniedError(absl::StrCat("cannot open ", path, "; name a file that you may read"));
  }
  file.read(reinterpret_cast<char*>(bytes->mutable_bytes().data()), static_cast<std::streamsize>(size));
  if (!file) return absl::DataLossError(absl::StrCat("cannot read ", path, " to its end; copy it anew"));
  return bytes;
}

absl::StatusOr<std::string> read_text(const std::string& path) {
  const absl::StatusOr<Array> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  return std::string(reinterpret_cast<const char*>(bytes->bytes().data()), bytes->bytes().size());
}

}  // namespace cumulus::cli

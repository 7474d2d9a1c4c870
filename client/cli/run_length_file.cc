#include "cli/run_length_file.h"

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "cli/output_file.h"

namespace cumulus::cli {

absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", error.message()));
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) return absl::DataLossError(absl::StrCat("cannot read ", path, " to its end; copy it anew"));
  return bytes;
}

absl::Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  OutputFile file(path);
  file.write(bytes);
  return file.commit();
}

absl::StatusOr<RunLengthFile> read_run_length_file(const std::string& path) {
  absl::StatusOr<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<RunLengthContainer> container = RunLengthContainer::parse(*bytes);
  if (!container.ok()) {
    return absl::Status(container.status().code(),
                        absl::StrCat(path, " is ", std::string(container.status().message())));
  }
  return RunLengthFile{*std::move(bytes), *std::move(container)};
}

}  // namespace cumulus::cli

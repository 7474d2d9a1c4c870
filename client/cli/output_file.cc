#include "cli/output_file.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace cumulus::cli {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      unfinished_(absl::StrCat(path_, ".unfinished-", getpid())),
      stream_(unfinished_, std::ios::binary) {}

OutputFile::~OutputFile() {
  stream_.close();
  std::error_code ignored;  // after commit() there is none
  std::filesystem::remove(unfinished_, ignored);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  stream_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

absl::Status OutputFile::commit() {
  stream_.close();
  std::error_code error;
  if (!stream_.fail()) std::filesystem::rename(unfinished_, path_, error);
  if (!stream_.fail() && !error) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "cannot write ", path_, "; name a file in a folder that exists, can be written and has space"));
}

}  // namespace cumulus::cli

#include "cli/commands/run_length/container_file.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "cli/files/input.h"
#include "cli/files/output.h"

namespace cumulus::cli {

absl::Status write_file(const std::string& path, std::span<const std::byte> bytes) {
  OutputFile file(path);
  file.write(bytes);
  return file.commit();
}

absl::StatusOr<RunLengthFile> read_run_length_file(const std::string& path) {
  absl::StatusOr<Array> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<RunLengthContainer> container = RunLengthContainer::parse(bytes->bytes());
  if (!container.ok()) {
    return absl::Status(container.status().code(),
                        absl::StrCat(path, " is ", std::string(container.status().message())));
  }
  return RunLengthFile{*std::move(bytes), *std::move(container)};
}

}  // namespace cumulus::cli

#include "cli/job/resident_files.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// Changes with the file's bytes, as far as its time and size tell.
std::string version_of(const std::string& path) {
  std::error_code ignored;
  const auto written = fs::last_write_time(path, ignored).time_since_epoch().count();
  return absl::StrCat(written, " ", fs::file_size(path, ignored));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ResidentFile>> ResidentFiles::get(const std::string& path,
                                                                       const Load& load) {
  const std::shared_ptr<Entry> wanted = entry(path);
  const std::lock_guard lock(wanted->mutex);
  std::string version = version_of(path);
  if (wanted->file != nullptr && wanted->version == version) return wanted->file;
  absl::StatusOr<ResidentFile> loaded = load();
  if (!loaded.ok()) return loaded.status();
  wanted->file = std::make_shared<const ResidentFile>(*std::move(loaded));
  wanted->version = std::move(version);
  return wanted->file;
}

std::shared_ptr<ResidentFiles::Entry> ResidentFiles::entry(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& known = entries_[std::filesystem::absolute(path).lexically_normal().string()];
  if (known == nullptr) known = std::make_shared<Entry>();
  return known;
}

}  // namespace cumulus::cli

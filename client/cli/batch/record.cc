#include "cli/batch/record.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ios>
#include <system_error>

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// When the oldest of the files was written; the beginning of time if one is missing.
fs::file_time_type oldest(const std::vector<std::string>& paths) {
  auto time = fs::file_time_type::max();
  for (const std::string& path : paths) {
    std::error_code error;
    const auto written = fs::last_write_time(path, error);
    time = std::min(time, error ? fs::file_time_type::min() : written);
  }
  return time;
}

}  // namespace

void BatchRecord::read() {
  std::ifstream before(path_);
  for (std::string line; std::getline(before, line);) before_.insert(line);
}

absl::Status BatchRecord::open(bool anew) {
  if (path_.empty()) return absl::OkStatus();
  file_.open(path_, anew ? std::ios::trunc : std::ios::app);
  if (file_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", path_, ": ", std::strerror(errno),
                   "; name another place for the record of what is done with --record"));
}

bool BatchRecord::holds(const ManifestJob& job) const {
  if (job.outputs.empty() || !before_.contains(job.text)) return false;
  const auto written = oldest(job.outputs);
  return written != fs::file_time_type::min() &&
         std::all_of(job.inputs.begin(), job.inputs.end(), [&](const std::string& path) {
           std::error_code no_file;
           const auto changed = fs::last_write_time(path, no_file);
           return no_file || fs::is_directory(path) || changed <= written;
         });
}

absl::Status BatchRecord::add(const ManifestJob& job) {
  if (path_.empty()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  file_ << job.text << std::endl;
  if (file_) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the job is done, but ", path_, " cannot be written any more: ", std::strerror(errno)));
}

}  // namespace cumulus::cli

#pragma once

#include <absl/status/status.h>

#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include "cli/batch/manifest.h"

namespace cumulus::cli {

/// Which jobs of a manifest are done: a text file with their lines, to which each is added as it ends.
class BatchRecord {
 public:
  /// An empty `path`: no record is kept.
  explicit BatchRecord(std::string path) : path_(std::move(path)) {}

  /// Reads what is there.
  void read();
  /// Opens it for more, behind what is there or, `anew`, in its place.
  absl::Status open(bool anew);
  /// Whether the job ended well before, its files are there, and none of the files it reads is newer than
  /// they are.
  bool holds(const ManifestJob& job) const;
  /// From any thread.
  absl::Status add(const ManifestJob& job);

 private:
  const std::string path_;
  std::set<std::string> before_;
  std::mutex mutex_;
  std::ofstream file_;
};

}  // namespace cumulus::cli

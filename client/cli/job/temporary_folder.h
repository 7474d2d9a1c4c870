#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>

namespace cumulus::cli {

/// A folder of this process alone, for as long as this object lives. What a process that was killed has left
/// behind is removed when the next one makes its own: each folder has a file that its owner has locked, which
/// the kernel undoes however the owner ends.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> make();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  bool lock();

  const std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace cumulus::cli

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/core/memory.h"
#include "server/runtime/descriptor.h"

namespace cumulus::server {

/// A folder whose files a request may name. Nothing outside it is reached, whatever a name says and whatever
/// links lie in it: the kernel looks the name up below the open folder, and follows no link (openat2).
class FileRoot {
 public:
  /// INVALID_ARGUMENT where `folder` is none, or the kernel is older than 5.6.
  static absl::StatusOr<std::shared_ptr<const FileRoot>> open(const std::string& folder);

  /// Asked for the file's size before anything of it is read; its error ends the reading.
  using Admit = std::function<absl::Status(std::size_t bytes)>;
  /// The bytes of the regular file at `path`, relative to the folder; may block. `field` is the request's,
  /// for errors. NOT_FOUND (FILE_NOT_FOUND), with one text for all that is in the way: who asks learns
  /// nothing of files that may not be read.
  absl::StatusOr<HostMemory> read(const std::string& path, std::string_view field, const Admit& admit) const;

 private:
  explicit FileRoot(Descriptor folder) : folder_(std::move(folder)) {}
  Descriptor open_beneath(const std::string& path) const;

  const Descriptor folder_;
};

}  // namespace cumulus::server

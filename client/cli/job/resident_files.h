#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cumulus/session.h"

namespace cumulus::cli {

/// The arrays of a file, on the server, with the session that has them: calls that take them run in it.
struct ResidentFile {
  std::shared_ptr<const Session> session;
  std::vector<Buffer> buffers;
};

/// What the jobs of a command have sent once for all of them.
class ResidentFiles {
 public:
  using Load = std::function<absl::StatusOr<ResidentFile>()>;

  /// The file at `path`, loaded by the first job that asks for it as it is now: one that has changed
  /// meanwhile is loaded again. Those that ask while it is being loaded wait for it. What could not be loaded
  /// is tried again by the next that asks.
  absl::StatusOr<std::shared_ptr<const ResidentFile>> get(const std::string& path, const Load& load);

 private:
  struct Entry {
    std::mutex mutex;
    std::string version;
    std::shared_ptr<const ResidentFile> file;
  };
  std::shared_ptr<Entry> entry(const std::string& path);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace cumulus::cli

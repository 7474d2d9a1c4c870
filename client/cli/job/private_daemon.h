#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cli/job/temporary_folder.h"

namespace cumulus::cli {

/// A cumulusd of our own on a Unix socket in a folder that nobody else can enter, for as long as this
/// object lives. It stops too when this process dies.
class PrivateDaemon {
 public:
  /// Starts the cumulusd that lies beside this program, or else the one in PATH. `backend` ("cpu", "cuda")
  /// may be empty: the daemon chooses.
  static absl::StatusOr<std::unique_ptr<PrivateDaemon>> launch(const std::string& backend);

  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;
  ~PrivateDaemon();

  /// At once where it has served before. The error tells the end of the daemon's log; CANCELLED after
  /// interrupt().
  absl::Status wait_until_serving();
  /// For Client::connect, once it serves.
  std::string target() const { return "unix:" + (folder_->path() / "socket").string(); }

 private:
  explicit PrivateDaemon(std::unique_ptr<TemporaryFolder> folder) : folder_(std::move(folder)) {}
  absl::Status launch_process(const std::string& backend);
  bool has_ended();
  std::string log_tail() const;

  const std::unique_ptr<TemporaryFolder> folder_;
  pid_t process_ = -1;
  bool served_ = false;
};

}  // namespace cumulus::cli

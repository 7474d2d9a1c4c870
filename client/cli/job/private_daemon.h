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
  /// Starts the cumulusd that lies beside this program, or else the one in PATH, and waits until it
  /// serves. `backend` ("cpu", "cuda") may be empty: the daemon chooses. The error tells the end of the
  /// daemon's log; CANCELLED after interrupt().
  static absl::StatusOr<std::unique_ptr<PrivateDaemon>> start(const std::string& backend);

  PrivateDaemon(const PrivateDaemon&) = delete;
  PrivateDaemon& operator=(const PrivateDaemon&) = delete;
  ~PrivateDaemon();

  /// For Client::connect.
  std::string target() const { return "unix:" + (folder_->path() / "socket").string(); }

 private:
  explicit PrivateDaemon(std::unique_ptr<TemporaryFolder> folder) : folder_(std::move(folder)) {}
  absl::Status launch(const std::string& backend);
  absl::Status wait_until_serving();
  bool has_ended();
  std::string log_tail() const;

  const std::unique_ptr<TemporaryFolder> folder_;
  pid_t process_ = -1;
};

}  // namespace cumulus::cli

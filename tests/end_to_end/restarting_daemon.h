#pragma once

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/end_to_end/program.h"

namespace cumulus::testing {

/// A daemon that comes back at the same place, a Unix socket, as another instance.
class RestartingDaemon {
 public:
  explicit RestartingDaemon(std::vector<std::string> arguments = {}) : arguments_(std::move(arguments)) {
    arguments_.insert(arguments_.begin(), {"--listen", target(), "--lame-duck", "0"});
    start();
  }

  std::string target() const { return "unix:" + (folder_ / "socket"); }
  Program& program() { return daemon_->program(); }

  /// Returns once it serves.
  void start() { daemon_ = std::make_unique<Daemon>(arguments_); }
  /// Returns once it has ended.
  Ended end(int signal) {
    program().send(signal);
    return program().wait();
  }

 private:
  const TemporaryFolder folder_;
  std::vector<std::string> arguments_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace cumulus::testing

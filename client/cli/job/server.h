#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cli/job/private_daemon.h"

namespace cumulus::cli {

/// Where jobs run: the server that was named, or a private one for all of them, started when the first asks.
class JobServer {
 public:
  /// `address` is HOST:PORT or unix:PATH; empty: a private daemon with `backend`, which may be empty, too.
  JobServer(std::string address, std::string backend)
      : address_(std::move(address)), backend_(std::move(backend)) {}

  /// For Client::connect. From any thread.
  absl::StatusOr<std::string> target();
  /// Whether it ends with the command, and nobody starts it again.
  bool is_private() const { return address_.empty(); }
  /// For reports: the address, or "private".
  std::string name() const { return address_.empty() ? "private" : address_; }

 private:
  const std::string address_;
  const std::string backend_;
  std::mutex mutex_;
  std::unique_ptr<PrivateDaemon> daemon_;
};

}  // namespace cumulus::cli

#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cli/job/private_daemon.h"
#include "cumulus/client.h"

namespace cumulus::cli {

/// Where jobs run: the server that was named, or a private one for all of them, started when the first asks.
class JobServer {
 public:
  /// `address` is HOST:PORT or unix:PATH; empty: a private daemon with `backend`, which may be empty, too.
  JobServer(std::string address, std::string backend, Credentials credentials)
      : address_(std::move(address)), backend_(std::move(backend)), credentials_(std::move(credentials)) {}

  /// For Client::connect. From any thread.
  absl::StatusOr<std::string> target();
  /// For the connection to it.
  ConnectOptions options() const {
    ConnectOptions options;
    options.credentials = credentials_;
    return options;
  }
  /// For reports: the address, or "private".
  std::string name() const { return address_.empty() ? "private" : address_; }

 private:
  const std::string address_;
  const std::string backend_;
  const Credentials credentials_;
  std::mutex mutex_;
  std::unique_ptr<PrivateDaemon> daemon_;
};

}  // namespace cumulus::cli

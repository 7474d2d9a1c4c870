#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cli/job/private_daemon.h"
#include "cumulus/client.h"

namespace cumulus::cli {

/// Where jobs run: the server that was named, or a private one for all of them.
class JobServer {
 public:
  /// `address` is HOST:PORT or unix:PATH; empty: a private daemon with `backend`, which may be empty, too.
  /// `wait` is what its user gives a server that does not serve, at first and after one that ended; without
  /// it the first answer comes at once, and calls outlast a restart.
  JobServer(std::string address, std::string backend, Credentials credentials,
            std::optional<absl::Duration> wait)
      : address_(std::move(address)),
        backend_(std::move(backend)),
        credentials_(std::move(credentials)),
        wait_(wait) {}

  /// Starts a private daemon, if there is to be one, and does not wait for it. From any thread, as the next
  /// ones.
  void begin();
  /// For Client::connect. Begins, if nobody has, and waits for a private daemon to serve.
  absl::StatusOr<std::string> target();
  /// Gives a server that does not serve `patience`, or the time that its user wants it to be given.
  absl::StatusOr<Client> connect(const Cancellation& interrupt, absl::Duration patience);
  /// For a connection to it.
  ConnectOptions options() const;
  /// Whether it ends with the command, and nobody starts it again.
  bool is_private() const { return address_.empty(); }
  /// For reports: the address, or "private".
  std::string name() const { return address_.empty() ? "private" : address_; }

 private:
  absl::Status launch();  // with the mutex

  const std::string address_;
  const std::string backend_;
  const Credentials credentials_;
  const std::optional<absl::Duration> wait_;
  std::mutex mutex_;
  std::unique_ptr<PrivateDaemon> daemon_;
};

/// Of a status of connect(): there is a server, or there may be one, but it does not want this client, or the
/// client's own files are wrong. Waiting does not help.
bool refuses(const absl::Status& status);
/// Of a status that the network made, not a server.
bool is_server_gone(const absl::Status& status);
/// What a user is told then.
std::string lost_server(const absl::Status& status);

}  // namespace cumulus::cli

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/configuration.h"
#include "server/runtime/connections/acceptor.h"
#include "server/runtime/connections/watchdog.h"
#include "server/runtime/health_service.h"
#include "server/runtime/identity/certificates.h"
#include "server/runtime/identity/identity.h"
#include "server/runtime/listen_address.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// Ignores SIGPIPE, and blocks SIGTERM, SIGINT and SIGHUP in this thread and in all that it starts from now
/// on, so that wait_for_stop_signal gets them. Call it before any thread exists.
void prepare_signals();
/// Returns when SIGTERM or SIGINT comes. From then on a second one ends the process at once. Calls
/// `on_hangup` for each SIGHUP before that.
int wait_for_stop_signal(const std::function<void()>& on_hangup);

/// Raises the soft limit of open files, of which every connection takes one, to the hard limit, and says in
/// the log what it is.
void raise_file_limit();

/// Ends the process with what it then has to say in the log, and without destructors: a library's threads may
/// take their time to end.
[[noreturn]] void end_process(int code, absl::Duration flush_limit);
/// Ends the process with `code` once `limit` is over, whatever it does then.
void end_process_after(absl::Duration limit, absl::Duration flush_limit, int code = 0);

/// The gRPC server on its addresses, with health and, where configured, reflection.
class ServerLifecycle {
 public:
  ServerLifecycle(ServerLifecycle&&) = default;
  /// Waits for a drain's end.
  ~ServerLifecycle();

  struct Security {
    std::shared_ptr<const Identity> identity;          // null: callers are known by their addresses
    std::shared_ptr<const Certificates> certificates;  // null: no TLS
  };
  /// Binds every address of `configuration.listen` and serves `services`, over TLS where there are
  /// certificates, but for Unix sockets; health says NOT_SERVING still. INVALID_ARGUMENT naming the address
  /// that cannot be bound.
  static absl::StatusOr<ServerLifecycle> start(const Configuration& configuration,
                                               const std::vector<grpc::Service*>& services,
                                               const Security& security = {});

  /// What health says, and how many connections there are.
  bool serving() const { return *serving_; }
  std::size_t connections() const { return calls_->connections(); }
  /// What is served, with the port that was found where the configuration said 0.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// Health says SERVING, for the server and for each service of `names`; the port file is written.
  absl::Status announce(const Configuration& configuration, const std::vector<std::string>& names);
  /// From now on calls `deaf` with an address that this server does not answer any more.
  void watch(absl::Duration interval, std::function<void(const std::string&)> deaf);
  /// Health says NOT_SERVING while everything is still taken (lame duck). Then `runtime` begins nothing new,
  /// and its sessions have until the drain's deadline to come to their end. Then what runs ends with
  /// UNAVAILABLE, first the Watches, and connections are told to go (GOAWAY). Returns when none of Cumulus's
  /// calls is left; half messages may be.
  void drain(const Configuration::Shutdown& limits, Runtime& runtime);
  /// A device has failed: health says NOT_SERVING, and what waits for the device ends. Returns when no call
  /// is left, or after `to_answer`.
  void fail(DeviceSlot& slot, absl::Duration to_answer);

 private:
  ServerLifecycle() = default;
  void set_serving(bool serving);

  std::unique_ptr<std::atomic<bool>> serving_ = std::make_unique<std::atomic<bool>>(false);
  std::shared_ptr<OpenCalls> calls_;
  std::unique_ptr<HealthService> health_;  // before the server, which uses it to its end
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<Watchdog> watchdog_;
  std::thread shutdown_;
  bool tls_ = false;
  std::vector<ListenAddress> listens_at_;
  std::vector<std::string> socket_paths_;
  std::vector<std::string> addresses_;
};

}  // namespace cumulus::server

#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/runtime/connections/limits.h"
#include "server/runtime/connections/open_calls.h"
#include "server/runtime/descriptor.h"
#include "server/runtime/listen_address.h"

namespace cumulus::server {

/// Listens at `address`; of TCP at all that the host's name means. `port` becomes what 0 was taken for,
/// `field` is what the configuration calls the address.
absl::StatusOr<std::vector<Descriptor>> listen_at(const ListenAddress& address, int& port,
                                                  std::string_view field = "listen");

/// Takes connections in for gRPC, whose own acceptor never accepts again once the process had no descriptor
/// left. This one keeps some, closes connections that sent nothing when others need their place, bounds those
/// of one client, and closes those whose calls never begin: of half a message gRPC does not speak.
class Acceptor {
 public:
  /// Gives a connection, which is the receiver's from then on, to gRPC.
  using Hand = std::function<void(int listener, int connection)>;

  Acceptor(std::vector<Descriptor> listeners, const ConnectionLimits& limits,
           std::shared_ptr<OpenCalls> calls, Hand hand);
  /// Listens no longer. Connections stay.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  struct Connection {
    int number = -1;
    ino_t inode = 0;   // tells it from a later one of the same number
    std::string peer;  // as gRPC names it; "unix:" for all Unix sockets
    absl::Time accepted;
  };
  using Connections = std::list<Connection>;

  void run();
  void accept_some(int listener);
  void take(int listener, Descriptor connection);
  bool has_room_for(const std::string& client);
  /// Of those that have never sent a byte the oldest.
  void close_silent(std::size_t at_most, const std::function<bool(const std::string&)>& of_client);
  void forget(const Connection& connection) const;
  /// Behind Unix sockets only while none of their calls runs: gRPC does not say whose a call is. When the
  /// next may have stalled.
  absl::Time close_stalled(absl::Time now);
  void remove_closed();

  const std::vector<Descriptor> listeners_;
  const ConnectionLimits limits_;
  const std::shared_ptr<OpenCalls> calls_;
  const Hand hand_;
  const Descriptor wake_;
  // Of this thread alone.
  std::map<std::string, Connections> clients_;  // by address; oldest first
  std::thread thread_;
};

}  // namespace cumulus::server

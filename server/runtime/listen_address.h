#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace cumulus::server {

/// Where the daemon serves.
struct ListenAddress {
  std::string text;         // as gRPC takes it: "127.0.0.1:50651", "[::1]:50651", "unix:/run/cumulus.sock"
  std::string socket_path;  // of a Unix socket; empty for TCP
  std::string host;         // of TCP, without brackets
  int port = 0;             // of TCP; 0: any free one

  bool is_unix() const { return !socket_path.empty(); }
  /// Reached from this machine only: a Unix socket, localhost, 127.0.0.0/8 or ::1.
  bool is_loopback() const;
  /// The same with another port.
  std::string with_port(int bound_port) const;
};

/// Takes HOST:PORT, [HOST6]:PORT and unix:PATH. The error says what is wrong and what would be right.
absl::StatusOr<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace cumulus::server

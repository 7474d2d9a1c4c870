#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace cumulus::bench {

/// What sockets themselves can do: a process that throws away what it receives and sends what it is asked
/// for, in pieces of 1 MiB, over loopback TCP and over a Unix socket.
class PlainServer {
 public:
  /// Forks; to be made before the program has threads. Throws std::runtime_error.
  PlainServer();
  ~PlainServer();
  PlainServer(const PlainServer&) = delete;
  PlainServer& operator=(const PlainServer&) = delete;

  int tcp_port() const { return tcp_port_; }
  const std::string& unix_path() const { return unix_path_; }

 private:
  int tcp_port_ = 0;
  std::string unix_path_;
  pid_t process_ = 0;
};

/// Connections to it, each of which moves a part of the bytes on a thread of its own.
class PlainClient {
 public:
  enum class Over { kTcp, kUnix };
  PlainClient(const PlainServer& server, Over over, int connections);
  ~PlainClient();
  PlainClient(const PlainClient&) = delete;
  PlainClient& operator=(const PlainClient&) = delete;

  /// Both throw std::runtime_error where a socket fails.
  void upload(std::span<const std::byte> bytes) const;
  void download(std::span<std::byte> bytes) const;

 private:
  std::vector<int> sockets_;
};

}  // namespace cumulus::bench

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace cumulus::cli {

/// Serves FilterBox and BuildSamplingTable at `address`, HOST:PORT or unix:PATH, and nothing else: each
/// answer has the array of its request, or `table_bytes` zeros. It is what gRPC alone costs. Serves until
/// standard input ends; says on standard output when it begins, and its port.
absl::Status serve_echo(const std::string& address, std::int64_t table_bytes);

/// This program once more, as that server, for as long as this object lives.
class EchoServer {
 public:
  /// Reached as `target` is: over a Unix socket, or over TCP.
  static absl::StatusOr<std::unique_ptr<EchoServer>> start(const std::string& target,
                                                           std::int64_t table_bytes);
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;
  ~EchoServer();

  const std::string& target() const { return target_; }

 private:
  EchoServer() = default;

  std::string folder_;  // of the Unix socket
  std::string target_;
  pid_t process_ = -1;
  int input_ = -1;  // the server's, which ends it
};

}  // namespace cumulus::cli

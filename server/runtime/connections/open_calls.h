#pragma once

#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace cumulus::server {

/// The calls that run, by the peer of their connection. A call is here once its first message is whole (for
/// a stream: once it has begun), as gRPC does not speak of it before. Thread-safe.
class OpenCalls {
 public:
  /// `awaited`: a drain waits for it.
  void begin(const std::string& peer, bool awaited);
  void end(const std::string& peer, bool awaited);

  /// Since when the peer has had no call; InfiniteFuture while it has one, InfinitePast where it had none.
  absl::Time idle_since(const std::string& peer) const;
  /// Forgets a peer whose connection is closed.
  void forget(const std::string& peer);
  /// Of all peers, as the acceptor last counted them.
  void count_connections(std::size_t count) { connections_ = count; }
  std::size_t connections() const { return connections_; }
  /// Waits until no awaited call runs, or until `limit` is over.
  void wait_for_none(absl::Duration limit);

 private:
  struct Peer {
    std::size_t calls = 0;
    absl::Time idle_since;
    bool forgotten = false;
  };

  mutable std::mutex mutex_;
  std::condition_variable none_awaited_;
  std::map<std::string, Peer> peers_;
  std::size_t awaited_ = 0;
  std::atomic<std::size_t> connections_ = 0;
};

/// Makes the interceptor of every call: it counts the call in `calls`, and answers a message that is none of
/// its type with INVALID_ARGUMENT (MALFORMED_MESSAGE), for which gRPC 1.51 says UNIMPLEMENTED and nothing
/// else.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_call_interceptors(
    std::shared_ptr<OpenCalls> calls);

}  // namespace cumulus::server

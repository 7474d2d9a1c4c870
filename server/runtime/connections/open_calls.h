#pragma once

#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cumulus::server {

/// The calls that run, by the peer of their connection. A call is here once its first message is whole (for
/// a stream: once it has begun), as gRPC does not speak of it before. Thread-safe.
class OpenCalls {
 public:
  /// `awaited`: a drain waits for it.
  void begin(const std::string& peer, bool awaited);
  void end(const std::string& peer, bool awaited);
  /// Work that a drain waits for, and that no call of gRPC's stands for.
  void begin_work();
  void end_work();

  /// Since when the peer has had no call; InfiniteFuture while it has one, InfinitePast where it had none.
  absl::Time idle_since(const std::string& peer) const;
  /// Forgets a peer whose connection is closed.
  void forget(const std::string& peer);
  /// Of all peers, as the acceptor last counted them.
  void count_connections(std::size_t count) { connections_ = count; }
  std::size_t connections() const { return connections_; }
  /// All calls that have begun so far.
  std::uint64_t begun() const { return begun_; }
  /// Waits until no awaited call and no work runs, or until `limit` is over.
  void wait_for_none(absl::Duration limit);

 private:
  struct Peer {
    std::size_t calls = 0;
    absl::Time idle_since;
    bool forgotten = false;
  };

  void end_awaited();

  mutable std::mutex mutex_;
  std::condition_variable none_awaited_;
  std::map<std::string, Peer> peers_;
  std::size_t awaited_ = 0;
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<std::size_t> connections_ = 0;
};

/// Counts a call for as long as it lives.
class OpenCall {
 public:
  OpenCall(std::shared_ptr<OpenCalls> calls, std::string peer, bool awaited)
      : calls_(std::move(calls)), peer_(std::move(peer)), awaited_(awaited) {
    calls_->begin(peer_, awaited_);
  }
  ~OpenCall() { calls_->end(peer_, awaited_); }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

 private:
  const std::shared_ptr<OpenCalls> calls_;
  const std::string peer_;
  const bool awaited_;
};

/// Counts work for as long as it lives.
class OpenWork {
 public:
  explicit OpenWork(std::shared_ptr<OpenCalls> calls) : calls_(std::move(calls)) { calls_->begin_work(); }
  ~OpenWork() { calls_->end_work(); }
  OpenWork(const OpenWork&) = delete;
  OpenWork& operator=(const OpenWork&) = delete;

 private:
  const std::shared_ptr<OpenCalls> calls_;
};

/// A service whose clients ask for work by another way than gRPC, too.
class CountsItsWork {
 public:
  virtual ~CountsItsWork() = default;
  /// Before the first work.
  virtual void count_work_in(std::shared_ptr<OpenCalls> calls) = 0;
};

/// A service that counts its calls itself, and itself says what is wrong with a malformed message: for its
/// calls gRPC makes no interceptors, with which each call goes through the completion queue twice more.
class CountsItsCalls {
 public:
  virtual ~CountsItsCalls() = default;
  /// Before the first call. Returns how the paths of its RPCs begin: "/cumulus.v1.Operations/".
  virtual std::string count_in(std::shared_ptr<OpenCalls> calls) = 0;
};

/// Makes the interceptor of each call whose path begins with none of `counted`: it counts the call in
/// `calls`, and answers a message that is none of its type with INVALID_ARGUMENT (MALFORMED_MESSAGE), for
/// which gRPC 1.51 says UNIMPLEMENTED and nothing else.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_call_interceptors(
    std::shared_ptr<OpenCalls> calls, std::vector<std::string> counted = {});

}  // namespace cumulus::server

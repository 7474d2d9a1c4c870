#pragma once

#include <grpcpp/alarm.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cumulus/session.h"
#include "cumulus/v1/sessions.pb.h"
#include "library/connection.h"
#include "library/outage.h"

namespace cumulus {

/// A session as it is on one server.
struct Lease {
  int generation = 0;  // how often the session had been made before
  std::shared_ptr<Connection> connection;
  std::string name;
  std::string device;
  std::string instance;
  std::string endpoint;

  CallContext context() const { return {name, instance}; }
};

/// What a Session, its calls and its Buffers share.
class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  /// `server` is where sessions are made.
  SessionState(std::shared_ptr<Connection> server, SessionOptions options)
      : server_(std::move(server)), options_(std::move(options)) {}

  const std::shared_ptr<Connection>& server() const { return server_; }
  bool recreates() const { return options_.recreate; }

  /// Makes the session, also where there was one before. Blocks.
  absl::Status create(Outage& outage);
  std::shared_ptr<const Lease> lease() const;

  /// OK where a call under `lease` that failed with `failure` is to be repeated: the session, or another in
  /// its place, is there. Else why not. Blocks for as long as the outage may last.
  absl::Status go_on_after(const absl::Status& failure, const Lease& lease, Outage& outage);
  /// Of what makes buffers again, one at a time has its turn.
  std::mutex& replays() { return replays_; }
  /// Runs `work`, which may block, on a thread that this session has as long as there is some.
  void post(std::function<void()> work);

  /// Ends the renewals; afterwards buffers are not released one by one, and nothing is made again.
  void close();
  bool closed() const;

 private:
  /// Renews the lease a third of `ttl` from now, and again, until the session is closed or gone.
  void keep_alive(absl::Duration ttl);
  void work();

  const std::shared_ptr<Connection> server_;
  const SessionOptions options_;
  std::mutex recoveries_;
  std::mutex replays_;

  mutable std::mutex mutex_;  // of what follows
  std::shared_ptr<const Lease> lease_;
  bool closed_ = false;
  std::unique_ptr<grpc::Alarm> renewal_;
  std::deque<std::function<void()>> posted_;
  bool working_ = false;
};

/// What a handle stands for.
class SessionAccess {
 public:
  static const std::shared_ptr<SessionState>& state(const Session& session) { return session.state_; }
};

}  // namespace cumulus

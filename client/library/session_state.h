#pragma once

#include <grpcpp/alarm.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "cumulus/session.h"
#include "cumulus/v1/sessions.pb.h"
#include "library/connection.h"

namespace cumulus {

/// What a Session and its Buffers share.
struct SessionState : std::enable_shared_from_this<SessionState> {
  SessionState(std::shared_ptr<Connection> its_connection, const v1::Session& session)
      : connection(std::move(its_connection)),
        name(session.name()),
        device(session.device()),
        instance(session.instance()),
        endpoint(session.endpoint()) {}

  /// Renews the lease a third of `ttl` from now, and again, until the session is closed or gone.
  void keep_alive(absl::Duration ttl);

  /// Ends the renewals; afterwards buffers are not released one by one.
  void close();

  const std::shared_ptr<Connection> connection;
  const std::string name;
  const std::string device;
  const std::string instance;
  const std::string endpoint;

  std::mutex mutex;
  bool closed = false;
  std::unique_ptr<grpc::Alarm> renewal;
};

/// Makes the handles that only the library may make.
class BufferAccess {
 public:
  static absl::StatusOr<Buffer> make(const std::shared_ptr<SessionState>& session, const v1::Buffer& buffer);
  static const std::shared_ptr<SessionState>& session(const Buffer& buffer) { return buffer.session_; }
};

}  // namespace cumulus

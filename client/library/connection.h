#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cumulus/client.h"
#include "library/credentials.h"
#include "library/event_loop.h"
#include "library/wire.h"

namespace cumulus {

/// A channel, and the one way in which every unary call goes over it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// INVALID_ARGUMENT where the credentials cannot be used.
  static absl::StatusOr<std::shared_ptr<Connection>> open(const std::string& target,
                                                          const ConnectOptions& options);

  using Done = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  /// Calls `method` ("/package.Service/Method") and hands its answer to `done`, once, on the event loop's
  /// thread. Repeats it with back-off while it answers UNAVAILABLE with RetryInfo and the deadline allows.
  void call(std::string method, const grpc::ByteBuffer& request, const CallOptions& options, Done done);

  absl::StatusOr<grpc::ByteBuffer> call_and_wait(std::string method, const grpc::ByteBuffer& request,
                                                 const CallOptions& options);

  template <class Response>
  absl::StatusOr<Response> call_and_wait(std::string method, const google::protobuf::MessageLite& request,
                                         const CallOptions& options) {
    absl::StatusOr<grpc::ByteBuffer> bytes =
        call_and_wait(std::move(method), wire::serialize(request), options);
    if (!bytes.ok()) return bytes.status();
    Response response;
    if (absl::Status parsed = wire::parse(*bytes, response); !parsed.ok()) return parsed;
    return response;
  }

  /// When a call with these options that starts now has to end.
  absl::Time deadline(const CallOptions& options, absl::Duration allowance = absl::ZeroDuration()) const;

  /// Gives a call that is about to start what every call carries.
  void prepare(grpc::ClientContext& context) const {
    if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
  }

  bool encrypted() const { return encrypted_; }
  grpc::GenericStub& stub() { return stub_; }
  grpc::CompletionQueue* queue() { return loop_.queue(); }

 private:
  Connection(std::shared_ptr<grpc::Channel> channel, const ConnectOptions& options, ChannelSecurity security)
      : stub_(std::move(channel)),
        call_timeout_(options.call_timeout),
        authorization_(std::move(security.authorization)),
        encrypted_(security.encrypted) {}

  EventLoop loop_;
  grpc::GenericStub stub_;
  absl::Duration call_timeout_;
  const std::string authorization_;
  const bool encrypted_;
};

/// Waiting times between repetitions of a call: 50 ms, doubling up to 5 s, each varied by a quarter so
/// that clients turned away together do not come back together.
class BackOff {
 public:
  absl::Duration next();

 private:
  absl::Duration delay_ = absl::Milliseconds(50);
};

}  // namespace cumulus

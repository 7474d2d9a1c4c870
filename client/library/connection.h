#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "cumulus/client.h"
#include "library/connection_count.h"
#include "library/credentials.h"
#include "library/event_loop.h"
#include "library/shared_memory/shared_memory.h"
#include "library/wire.h"

namespace cumulus {

namespace v1 {
class Capabilities;
}  // namespace v1

/// What a call says besides its request, and how the library takes its failure.
struct CallContext {
  // Session.name and Session.instance of the handles that the call names; empty where it names none.
  std::string session = {};
  std::string instance = {};
  /// The call may be repeated whatever became of it: after breaks, for ConnectOptions::max_outage.
  bool outlasts_breaks = false;

  void write(grpc::ClientContext& context) const;
};

/// A channel, the one way in which every unary call goes over it, and further ones for transfers.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// INVALID_ARGUMENT where the credentials cannot be used.
  static absl::StatusOr<std::shared_ptr<Connection>> open(const std::string& target,
                                                          const ConnectOptions& options);
  /// The one to a server that this one named: this one itself where `endpoint` is empty or its own target, or
  /// the credentials cannot be read any more.
  std::shared_ptr<Connection> to(const std::string& endpoint);

  using Done = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  /// Calls `method` ("/package.Service/Method") and hands its answer to `done`, once, on the event loop's
  /// thread. Repeats it with back-off while it answers UNAVAILABLE with RetryInfo and the deadline allows.
  void call(std::string method, const grpc::ByteBuffer& request, const CallOptions& options,
            const CallContext& context, Done done);

  absl::StatusOr<grpc::ByteBuffer> call_and_wait(std::string method, const grpc::ByteBuffer& request,
                                                 const CallOptions& options, const CallContext& context = {});

  template <class Response>
  absl::StatusOr<Response> call_and_wait(std::string method, const google::protobuf::MessageLite& request,
                                         const CallOptions& options, const CallContext& context = {}) {
    absl::StatusOr<grpc::ByteBuffer> bytes =
        call_and_wait(std::move(method), wire::serialize(request), options, context);
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
  /// With its calls it shows neither a token nor a certificate.
  bool shows_nothing() const { return authorization_.empty() && !encrypted_; }
  /// First of all in a transfer of `bytes`: where they are a shared array, the server's thread wakes
  /// meanwhile, and begins to copy those of an upload, which lasts as long as what is answered.
  void knock(std::span<const std::byte> bytes) {
    if (shows_nothing()) shared_memory_.arrays()->knock(bytes, SharedArrays::For::kDownload);
  }
  UploadKnock knock_for_upload(std::span<const std::byte> bytes) {
    return {shows_nothing() ? shared_memory_.arrays() : nullptr, bytes};
  }
  absl::Duration max_outage() const { return options_.max_outage; }

  /// Each lane has a connection to the server of its own, which is made when it is first asked for; lane 0 is
  /// the one that all calls go over but those of transfers over several.
  grpc::GenericStub& stub(int lane = 0);
  ConnectionCount& upload_connections() { return upload_connections_; }
  ConnectionCount& download_connections() { return download_connections_; }
  /// Of what the server can do, what transfers go by.
  void take_capabilities(const v1::Capabilities& capabilities);
  bool joins_uploads() const { return joins_uploads_; }
  grpc::CompletionQueue* queue() { return loop_.queue(); }
  SharedMemory& shared_memory() { return shared_memory_; }

 private:
  Connection(std::string target, const ConnectOptions& options, ChannelSecurity security);
  std::shared_ptr<grpc::Channel> make_channel() const;

  EventLoop loop_;
  const std::string target_;
  const ConnectOptions options_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::string authorization_;
  const bool encrypted_;
  grpc::GenericStub stub_;
  ConnectionCount upload_connections_;
  ConnectionCount download_connections_;
  std::atomic<bool> joins_uploads_ = false;
  SharedMemory shared_memory_;
  std::mutex mutex_;  // of what follows
  std::map<std::string, std::weak_ptr<Connection>> others_;
  std::map<int, grpc::GenericStub> lanes_;
};

/// Waiting times between repetitions of a call: 50 ms, doubling up to 1 s, each varied by a quarter so
/// that clients turned away together do not come back together.
class BackOff {
 public:
  absl::Duration next();

 private:
  absl::Duration delay_ = absl::Milliseconds(50);
};

}  // namespace cumulus

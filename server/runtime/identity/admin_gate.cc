#include "server/runtime/identity/admin_gate.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

using grpc::experimental::InterceptionHookPoints;

constexpr std::string_view kReflection = "/grpc.reflection.";
constexpr std::string_view kChannelz = "/grpc.channelz.";

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// A field of bytes in protobuf's form; of less than 128 bytes.
std::string short_field(char number, const std::string& bytes) {
  constexpr char kBytes = 2;
  return std::string({static_cast<char>(number << 3 | kBytes), static_cast<char>(bytes.size())}) + bytes;
}

/// A ServerReflectionResponse with an error, which its clients show; its class is not among gRPC's headers.
std::string reflection_error(grpc::StatusCode code) {
  const std::string error =
      std::string({'\x08', static_cast<char>(code)}) + short_field(2, "reflection is for admins");
  return short_field(7, error);
}

class Refusal final : public grpc::experimental::Interceptor {
 public:
  Refusal(grpc::Status status, std::string answer) : status_(std::move(status)), answer_(std::move(answer)) {}

  // The service does its work all the same: gRPC lets an interceptor change what a handler says, not stop it.
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      const grpc::Slice content(answer_);
      *methods->GetSerializedSendMessage() = grpc::ByteBuffer(&content, 1);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
      methods->ModifySendStatus(status_);
    methods->Proceed();
  }

 private:
  const grpc::Status status_;
  const std::string answer_;
};

class Gate final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Gate(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const std::string_view method = info->method();
    const bool reflection = begins_with(method, kReflection);
    if (!reflection && !begins_with(method, kChannelz)) return nullptr;
    const absl::StatusOr<Principal> caller = identity_->resolve(*info->server_context());
    const absl::Status allowed =
        caller.ok() ? require_admin(*caller, reflection ? "reflection" : "channelz") : caller.status();
    if (allowed.ok()) return nullptr;
    const grpc::Status status = to_grpc(allowed);
    return new Refusal(status, reflection ? reflection_error(status.error_code()) : "");  // gRPC's to delete
  }

 private:
  const std::shared_ptr<const Identity> identity_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_admin_gate(
    std::shared_ptr<const Identity> identity) {
  return std::make_unique<Gate>(std::move(identity));
}

}  // namespace cumulus::server

#include "server/runtime/identity/admin_gate.h"

#include <optional>
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

class Gate final : public grpc::experimental::Interceptor {
 public:
  Gate(const Identity& identity, const grpc::ServerContextBase& context, bool reflection)
      : identity_(identity), context_(context), reflection_(reflection) {}

  // The service does its work all the same: gRPC lets an interceptor change what a handler says, not stop it.
  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE) && !status().ok()) {
      const grpc::Slice content(reflection_ ? reflection_error(status().error_code()) : std::string());
      *methods->GetSerializedSendMessage() = grpc::ByteBuffer(&content, 1);
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) && !status().ok())
      methods->ModifySendStatus(status());
    methods->Proceed();
  }

 private:
  /// Found out when something is to be sent: who calls is not known yet when gRPC makes the interceptor.
  const grpc::Status& status() {
    if (!status_) {
      const absl::StatusOr<Principal> caller = identity_.resolve(context_);
      status_ = to_grpc(caller.ok() ? require_admin(*caller, reflection_ ? "reflection" : "channelz")
                                    : caller.status());
    }
    return *status_;
  }

  const Identity& identity_;
  const grpc::ServerContextBase& context_;
  const bool reflection_;
  std::optional<grpc::Status> status_;
};

class Gates final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Gates(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const std::string_view method = info->method();
    const bool reflection = begins_with(method, kReflection);
    if (!reflection && !begins_with(method, kChannelz)) return nullptr;
    return new Gate(*identity_, *info->server_context(), reflection);  // gRPC's to delete
  }

 private:
  const std::shared_ptr<const Identity> identity_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_admin_gate(
    std::shared_ptr<const Identity> identity) {
  return std::make_unique<Gates>(std::move(identity));
}

}  // namespace cumulus::server

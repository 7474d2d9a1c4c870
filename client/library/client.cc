#include "cumulus/client.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "cumulus/v1/server.pb.h"
#include "library/connection.h"
#include "library/run_operation.h"
#include "library/session_state.h"

namespace cumulus {
namespace {

Capabilities decode_capabilities(const v1::Capabilities& in) {
  Capabilities out;
  out.server_version = in.server_version();
  out.instance = in.instance();
  out.operations.assign(in.operations().begin(), in.operations().end());
  for (const v1::DeviceInfo& device : in.devices()) {
    out.devices.push_back({device.name(), device.backend(), device.model(), device.pool_bytes(),
                           device.reserved_bytes(), device.healthy()});
  }
  out.max_chunk_bytes = in.max_chunk_bytes();
  out.max_inline_bytes = in.max_inline_bytes();
  out.max_encoded_bytes = in.max_encoded_bytes();
  out.max_buffer_bytes = in.max_buffer_bytes();
  out.max_pixels = in.max_pixels();
  out.max_channels = in.max_channels();
  out.session_quota_bytes = in.session_quota_bytes();
  out.max_ttl = wire::decode_duration(in.max_ttl());
  out.max_deadline = wire::decode_duration(in.max_deadline());
  out.file_root = in.file_root();
  out.max_queue_depth = in.max_queue_depth();
  out.max_pipeline_steps = in.max_pipeline_steps();
  out.image_formats.assign(in.image_formats().begin(), in.image_formats().end());
  out.max_shared_device_bytes = in.max_shared_device_bytes();
  return out;
}

/// `status` with `context` before its text; its details stay.
absl::Status with_context(const absl::Status& status, const std::string& context) {
  absl::Status result(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](const auto& type, const absl::Cord& payload) { result.SetPayload(type, payload); });
  return result;
}

/// What a first call that found no server says. gRPC tells what is wrong with TLS in words only, and as
/// UNAVAILABLE, though trying again helps nobody.
absl::Status explain_silence(const absl::Status& status, const std::string& target, bool encrypted) {
  // OpenSSL's words, or BoringSSL's names, which newer gRPC has.
  const std::string words = absl::AsciiStrToLower(absl::StrReplaceAll(status.message(), {{"_", " "}}));
  if (absl::StrContains(words, "certificate verify failed")) {
    return absl::UnauthenticatedError(
        absl::StrCat("the server at ", target,
                     " shows a certificate that no authority in tls_ca (--tls-ca) has issued, or one "
                     "that is not valid today"));
  }
  if (absl::StrContains(words, "is not in peer certificate") ||
      absl::StrContains(words, "hostname verification check failed")) {
    return absl::UnauthenticatedError(
        absl::StrCat("the server at ", target,
                     " shows a certificate for other names; name the server as its certificate does, "
                     "or give it one with this name as subjectAltName"));
  }
  if (encrypted && absl::StrContains(words, "wrong version number")) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls_ca: the server at ", target,
                     " does not speak TLS; leave tls_ca out (--tls-ca, "
                     "CUMULUS_TLS_CA), or start cumulusd with --tls-cert and --tls-key"));
  }
  absl::Status silence = with_context(status, absl::StrCat("no Cumulus server answers at ", target));
  if (encrypted || !absl::StrContains(words, "socket closed")) return silence;
  return absl::Status(silence.code(), absl::StrCat(silence.message(),
                                                   "; if it speaks TLS, name the authority of "
                                                   "its certificate (--tls-ca, CUMULUS_TLS_CA)"));
}

}  // namespace

absl::StatusOr<Client> Client::connect(const std::string& target, const ConnectOptions& options) {
  absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::open(target, options);
  if (!connection.ok()) return connection.status();
  Client client(*std::move(connection));
  CallOptions first_call;
  first_call.timeout = options.connect_timeout;
  if (const auto answer = client.ask_capabilities(first_call, false); !answer.ok()) {
    const bool refused =
        absl::IsUnauthenticated(answer.status()) || absl::IsPermissionDenied(answer.status());
    if (refused) return with_context(answer.status(), absl::StrCat("the server at ", target, " refuses"));
    return explain_silence(answer.status(), target, client.connection_->encrypted());
  }
  return client;
}

absl::StatusOr<Capabilities> Client::capabilities(const CallOptions& options) const {
  return ask_capabilities(options, true);
}

absl::StatusOr<Capabilities> Client::ask_capabilities(const CallOptions& options,
                                                      bool outlasts_breaks) const {
  CallContext context;
  context.outlasts_breaks = outlasts_breaks;
  const auto answer = connection_->call_and_wait<v1::Capabilities>(
      "/cumulus.v1.Server/GetCapabilities", v1::GetCapabilitiesRequest(), options, context);
  if (!answer.ok()) return answer.status();
  connection_->take_capabilities(*answer);
  return decode_capabilities(*answer);
}

absl::StatusOr<Health> Client::health(const CallOptions& options) const {
  // grpc.health.v1 is not among gRPC's installed headers: its request without a service is empty, and
  // its answer one enumerator (1: serving, 2: not serving) in field 1.
  const grpc::Slice nothing("");
  auto answer =
      connection_->call_and_wait("/grpc.health.v1.Health/Check", grpc::ByteBuffer(&nothing, 1), options);
  if (!answer.ok()) return answer.status();
  grpc::ProtoBufferReader reader(&*answer);
  google::protobuf::io::CodedInputStream input(&reader);
  std::uint64_t state = 0;
  if (input.ReadTag() == 1 << 3) input.ReadVarint64(&state);
  return state == 1 ? Health::kServing : state == 2 ? Health::kNotServing : Health::kUnknown;
}

absl::StatusOr<Session> Client::create_session(const SessionOptions& options) const {
  auto state = std::make_shared<SessionState>(connection_, options);
  Outage outage(connection_->deadline(options.call), connection_->max_outage(), options.call.cancellation);
  if (absl::Status created = state->create(outage); !created.ok()) return created;
  return Session(std::move(state));
}

absl::StatusOr<Result> Client::run(const Operation& operation, const RunOptions& options) const {
  return run_async(operation, options).get();
}

std::future<absl::StatusOr<Result>> Client::run_async(const Operation& operation,
                                                      const RunOptions& options) const {
  return run_to_future(*connection_, nullptr, operation, options);
}

void Client::run_async(const Operation& operation, const RunOptions& options,
                       std::function<void(absl::StatusOr<Result>)> done) const {
  run_to_callback(*connection_, nullptr, operation, options, std::move(done));
}

}  // namespace cumulus

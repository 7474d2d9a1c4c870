#include "server/runtime/shared_memory/service.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "google/rpc/status.pb.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/instance.h"
#include "server/runtime/shared_memory/device_download.h"
#include "server/runtime/shared_memory/device_upload.h"
#include "server/runtime/shared_memory/early_copy.h"
#include "server/runtime/shared_memory/region_download.h"
#include "server/runtime/shared_memory/region_upload.h"
#include "server/runtime/shared_memory/ring_download.h"
#include "server/runtime/shared_memory/ring_upload.h"
#include "server/runtime/trace.h"

namespace cumulus::server {
namespace {

constexpr std::string_view kWriteShared = "WriteShared";
constexpr std::string_view kReadShared = "ReadShared";

/// Of what has ended, a ring.
SharedRegion::Kind kind_of(const SharedLink& link) {
  const std::shared_ptr<SharedRegion> region = link.region();
  return region == nullptr ? SharedRegion::Kind::kRing : region->kind();
}

/// A transfer of the form that the region has.
template <class Ring, class Array, class OfDevice, class Transfer, class... Arguments>
std::shared_ptr<Transfer> make_transfer(SharedRegion::Kind kind, Arguments&&... arguments) {
  switch (kind) {
    case SharedRegion::Kind::kArray:
      return std::make_shared<Array>(std::forward<Arguments>(arguments)...);
    case SharedRegion::Kind::kDevice:
      return std::make_shared<OfDevice>(std::forward<Arguments>(arguments)...);
    case SharedRegion::Kind::kRing:
      break;
  }
  return std::make_shared<Ring>(std::forward<Arguments>(arguments)...);
}

template <class... Arguments>
std::shared_ptr<SharedUpload> make_upload(SharedRegion::Kind kind, Arguments&&... arguments) {
  return make_transfer<RingUpload, RegionUpload, DeviceUpload, SharedUpload>(
      kind, std::forward<Arguments>(arguments)...);
}

template <class... Arguments>
std::shared_ptr<SharedDownload> make_download(SharedRegion::Kind kind, Arguments&&... arguments) {
  return make_transfer<RingDownload, RegionDownload, DeviceDownload, SharedDownload>(
      kind, std::forward<Arguments>(arguments)...);
}

/// A call of gRPC's that is a transfer. Deletes itself.
class GrpcCall final : public grpc::ServerUnaryReactor {
 public:
  SharedTransfer::Answer answer() {
    return {[this](const grpc::Status& status, bool /*begun*/) { Finish(status); }};
  }
  /// Before gRPC has this.
  void hold(std::shared_ptr<SharedTransfer> transfer) { transfer_ = std::move(transfer); }

 private:
  void OnCancel() override { transfer_->cancel(); }
  void OnDone() override { delete this; }

  std::shared_ptr<SharedTransfer> transfer_;
};

/// Of a status whose details are longer than an ANSWER.
std::string brief_details(const grpc::Status& status) {
  google::rpc::Status details;
  details.set_code(status.error_code());
  details.set_message(std::string(cut_text(status.error_message(), kMaxSharedMemoryText)));
  return details.SerializeAsString();
}

/// The ANSWER of a transfer that ended so, with the buffer where there is one. `calls` count the transfer,
/// where they are there.
SharedTransfer::Answer answer_over(const std::shared_ptr<SharedLink>& link,
                                   std::shared_ptr<const v1::Buffer> buffer,
                                   const std::shared_ptr<OpenCalls>& calls) {
  std::shared_ptr<const OpenWork> work;
  if (calls != nullptr) work = std::make_shared<const OpenWork>(calls);
  // The link has the transfer, which has this.
  return {
      [weak = std::weak_ptr(link), buffer = std::move(buffer), work](const grpc::Status& status, bool begun) {
        const std::shared_ptr<SharedLink> there = weak.lock();
        if (there == nullptr) return;
        std::string text = status.error_details();
        if (status.ok() && buffer != nullptr) text = buffer->SerializeAsString();
        if (text.size() > kMaxSharedMemoryCall) text = brief_details(status);
        there->send({.kind = SharedMemoryMessage::kAnswer,
                     .slot = static_cast<std::uint32_t>(status.error_code()),
                     .offset = begun ? 0 : kAnswerOfNothing},
                    text);
      },
      true};
}

/// Who shows a token or a certificate shows it with each call: it may be withdrawn meanwhile.
bool is_known_by_the_socket(const Principal& caller) {
  return !caller.proven || caller.name == kLocalPrincipal;
}

/// The method that a CALL names; empty where it names none.
std::string_view method_of(std::uint32_t what) {
  switch (static_cast<SharedMemoryCall>(what)) {
    case SharedMemoryCall::kWrite:
    case SharedMemoryCall::kWriteKnocked:
      return kWriteShared;
    case SharedMemoryCall::kRead:
    case SharedMemoryCall::kReadGiven:
      return kReadShared;
  }
  return {};
}

SharedDownload::Gives gives_of(std::uint32_t what) {
  return what == static_cast<std::uint32_t>(SharedMemoryCall::kReadGiven)
             ? SharedDownload::Gives::kWithTheCall
             : SharedDownload::Gives::kAfterBegin;
}

/// What follows a CALL: the request, and perhaps what a header `traceparent` would have.
struct CallText {
  std::string_view request;
  std::string_view trace;
};
CallText split_text(const SharedMemoryMessage& call, std::string_view text) {
  // 0: of a client that knows of no traces.
  const std::size_t bytes = call.bytes == 0 ? text.size() : std::min<std::size_t>(call.bytes, text.size());
  return {text.substr(0, bytes), text.substr(bytes)};
}

template <class Request>
absl::StatusOr<Request> read_request(std::string_view text) {
  Request request;
  if (request.ParseFromArray(text.data(), static_cast<int>(text.size())) && request.region().empty())
    return request;
  return bad_request("UNEXPECTED_DOORBELL", concat("the ", text.size(), " bytes after a CALL are no ",
                                                   Request::descriptor()->name(), " without a region"));
}

}  // namespace

SharedMemoryService::SharedMemoryService(Runtime& runtime, TransferService& transfers,
                                         SharedMemorySocket* socket)
    : runtime_(runtime), transfers_(transfers), socket_(socket) {
  if (socket_ != nullptr) socket_->begin_calls_by(this);
}

SharedMemoryService::~SharedMemoryService() {
  if (socket_ != nullptr) socket_->begin_calls_by(nullptr);
}

absl::Status SharedMemoryService::begin(const std::shared_ptr<SharedLink>& link, const Principal& caller,
                                        Asked asked) {
  const SharedMemoryMessage& message = asked.message;
  const std::string_view method = method_of(message.slot);
  absl::Status status =
      method.empty() ? bad_request("UNEXPECTED_DOORBELL",
                                   concat("a CALL of kind ", message.slot,
                                          " came; 0 writes, 1 reads, 2 reads into what it gives, and 3 "
                                          "writes what a KNOCK told of"))
                     : absl::OkStatus();
  if (status.ok() && !is_known_by_the_socket(caller)) {
    status = bad_request("UNEXPECTED_DOORBELL", concat("a CALL came by ", caller.name,
                                                       ", who shows a token or a certificate; call by gRPC"));
  }
  if (status.ok()) {
    const CallText said = split_text(message, asked.text);
    const absl::Duration timeout =
        absl::Nanoseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(message.offset, INT64_MAX)));
    Transfer::Options options = transfers_.options(method, timeout, caller, parse_traceparent(said.trace));
    status = method == kWriteShared
                 ? begin_write(link, std::move(options), said.request, std::move(asked.early))
                 : begin_read(link, std::move(options), said.request, gives_of(message.slot));
  }
  // An operator sees it as any call that did not begin.
  if (!status.ok())
    runtime_.telemetry.refused(method.empty() ? kWriteShared : method, TransferService::kRegionClient,
                               status);
  return status;
}

std::shared_ptr<EarlyCopy> SharedMemoryService::begin_early(const std::shared_ptr<SharedRegion>& region,
                                                            const Principal& caller, std::size_t bytes) {
  if (region == nullptr || runtime_.devices.size() != 1 || !is_known_by_the_socket(caller)) return nullptr;
  return EarlyCopy::begin(*runtime_.devices.front().device, region, bytes);
}

absl::Status SharedMemoryService::begin_write(const std::shared_ptr<SharedLink>& link,
                                              Transfer::Options options, std::string_view request,
                                              std::shared_ptr<EarlyCopy> early) {
  const auto wanted = read_request<v1::WriteSharedRequest>(request);
  if (!wanted.ok()) return wanted.status();
  options.min_rate = runtime_.configuration.limits.min_upload_rate;
  const auto buffer = std::make_shared<v1::Buffer>();
  const auto upload = make_upload(kind_of(*link), runtime_, link, std::move(options),
                                  answer_over(link, buffer, calls_), buffer.get());
  upload->use(std::move(early));
  upload->begin(*wanted);
  transfers_.watch().add(upload);  // which may wake its thread: the copy is on its way
  return absl::OkStatus();
}

absl::Status SharedMemoryService::begin_read(const std::shared_ptr<SharedLink>& link,
                                             Transfer::Options options, std::string_view request,
                                             SharedDownload::Gives gives) {
  const auto wanted = read_request<v1::ReadSharedRequest>(request);
  if (!wanted.ok()) return wanted.status();
  const auto download =
      make_download(kind_of(*link), runtime_, link, std::move(options), answer_over(link, nullptr, calls_));
  download->begin(*wanted, gives);
  transfers_.watch().add(download);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SharedLink>> SharedMemoryService::find(const std::string& region,
                                                                      const Principal& caller) {
  if (socket_ == nullptr)
    return not_found("REGION_NOT_FOUND", "this server shares no memory (shared_memory.socket is off)");
  return socket_->find(region, caller);
}

grpc::ServerUnaryReactor* SharedMemoryService::refuse(grpc::CallbackServerContext& context,
                                                      std::string_view rpc, const absl::Status& why) {
  runtime_.telemetry.refused(rpc, context.peer(), why);
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(to_grpc(with_context(why, rpc)));
  return reactor;
}

grpc::ServerUnaryReactor* SharedMemoryService::WriteShared(grpc::CallbackServerContext* context,
                                                           const v1::WriteSharedRequest* request,
                                                           v1::Buffer* response) {
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok()) return refuse(*context, kWriteShared, caller.status());
  absl::StatusOr<std::shared_ptr<SharedLink>> link = find(request->region(), *caller);
  if (!link.ok()) return refuse(*context, kWriteShared, link.status());
  Transfer::Options options = transfers_.options(kWriteShared, *context, *std::move(caller));
  options.min_rate = runtime_.configuration.limits.min_upload_rate;
  const SharedRegion::Kind kind = kind_of(**link);
  auto* const call = new GrpcCall();
  const auto upload =
      make_upload(kind, runtime_, *std::move(link), std::move(options), call->answer(), response);
  call->hold(upload);
  transfers_.watch().add(upload);
  upload->begin(*request);
  return call;
}

grpc::ServerUnaryReactor* SharedMemoryService::ReadShared(grpc::CallbackServerContext* context,
                                                          const v1::ReadSharedRequest* request,
                                                          v1::ReadSharedResponse* /*response*/) {
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok()) return refuse(*context, kReadShared, caller.status());
  absl::StatusOr<std::shared_ptr<SharedLink>> link = find(request->region(), *caller);
  if (!link.ok()) return refuse(*context, kReadShared, link.status());
  Transfer::Options options = transfers_.options(kReadShared, *context, *std::move(caller));
  const SharedRegion::Kind kind = kind_of(**link);
  auto* const call = new GrpcCall();
  const auto download = make_download(kind, runtime_, *std::move(link), std::move(options), call->answer());
  call->hold(download);
  transfers_.watch().add(download);
  download->begin(*request);
  return call;
}

}  // namespace cumulus::server

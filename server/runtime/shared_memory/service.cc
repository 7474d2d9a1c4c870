#include "server/runtime/shared_memory/service.h"

#include <utility>

#include "server/pipeline/errors.h"
#include "server/runtime/instance.h"
#include "server/runtime/shared_memory/device_download.h"
#include "server/runtime/shared_memory/device_upload.h"
#include "server/runtime/shared_memory/region_download.h"
#include "server/runtime/shared_memory/region_upload.h"
#include "server/runtime/shared_memory/ring_download.h"
#include "server/runtime/shared_memory/ring_upload.h"

namespace cumulus::server {
namespace {

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

}  // namespace

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
  constexpr std::string_view kRpc = "WriteShared";
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok()) return refuse(*context, kRpc, caller.status());
  absl::StatusOr<std::shared_ptr<SharedLink>> link = find(request->region(), *caller);
  if (!link.ok()) return refuse(*context, kRpc, link.status());
  Transfer::Options options = transfers_.options(kRpc, *context, *std::move(caller));
  options.min_rate = runtime_.configuration.limits.min_upload_rate;
  const SharedRegion::Kind kind = kind_of(**link);
  const auto upload = make_transfer<RingUpload, RegionUpload, DeviceUpload, SharedUpload>(
      kind, runtime_, *std::move(link), std::move(options), response);
  transfers_.watch().add(upload);
  upload->begin(*request);
  return upload.get();
}

grpc::ServerUnaryReactor* SharedMemoryService::ReadShared(grpc::CallbackServerContext* context,
                                                          const v1::ReadSharedRequest* request,
                                                          v1::ReadSharedResponse* /*response*/) {
  constexpr std::string_view kRpc = "ReadShared";
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok()) return refuse(*context, kRpc, caller.status());
  absl::StatusOr<std::shared_ptr<SharedLink>> link = find(request->region(), *caller);
  if (!link.ok()) return refuse(*context, kRpc, link.status());
  Transfer::Options options = transfers_.options(kRpc, *context, *std::move(caller));
  const SharedRegion::Kind kind = kind_of(**link);
  const auto download = make_transfer<RingDownload, RegionDownload, DeviceDownload, SharedDownload>(
      kind, runtime_, *std::move(link), std::move(options));
  transfers_.watch().add(download);
  download->begin(*request);
  return download.get();
}

}  // namespace cumulus::server

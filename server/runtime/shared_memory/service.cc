#include "server/runtime/shared_memory/service.h"

#include <utility>

#include "server/pipeline/errors.h"
#include "server/runtime/instance.h"
#include "server/runtime/shared_memory/region_download.h"
#include "server/runtime/shared_memory/region_upload.h"
#include "server/runtime/shared_memory/ring_download.h"
#include "server/runtime/shared_memory/ring_upload.h"

namespace cumulus::server {
namespace {

/// Whether a transfer goes through slots, rather than to or from an array's region.
bool has_slots(const SharedLink& link) {
  const std::shared_ptr<SharedRegion> region = link.region();
  return region == nullptr || region->kind() == SharedRegion::Kind::kRing;
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
  std::shared_ptr<SharedUpload> upload;
  if (has_slots(**link)) {
    upload = std::make_shared<RingUpload>(runtime_, *std::move(link), std::move(options), response);
  } else {
    upload = std::make_shared<RegionUpload>(runtime_, *std::move(link), std::move(options), response);
  }
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
  std::shared_ptr<SharedDownload> download;
  if (has_slots(**link)) {
    download = std::make_shared<RingDownload>(runtime_, *std::move(link), std::move(options));
  } else {
    download = std::make_shared<RegionDownload>(runtime_, *std::move(link), std::move(options));
  }
  transfers_.watch().add(download);
  download->begin(*request);
  return download.get();
}

}  // namespace cumulus::server

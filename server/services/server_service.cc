#include "server/services/server_service.h"

#include "cumulus/v1/operations.pb.h"
#include "server/pipeline/errors.h"
#include "server/runtime/image_decoder.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/runtime/wire.h"
#include "server/services/answer_at_once.h"
#include "server/version.h"

namespace cumulus::server {
namespace {

/// As they are for `caller`.
void write_limits(const Configuration& configuration, const Principal& caller, v1::Capabilities& message) {
  const auto& limits = configuration.limits;
  message.set_max_chunk_bytes(static_cast<std::int64_t>(kMaxChunkBytes));
  message.set_max_inline_bytes(static_cast<std::int64_t>(limits.max_inline_bytes));
  message.set_max_encoded_bytes(static_cast<std::int64_t>(limits.max_encoded_bytes));
  message.set_max_buffer_bytes(static_cast<std::int64_t>(limits.max_buffer_bytes));
  message.set_max_pixels(static_cast<std::int64_t>(limits.max_pixels));
  message.set_max_channels(static_cast<std::int32_t>(limits.max_channels));
  const PrincipalLimits& own = caller.limits;
  message.set_max_sessions(static_cast<std::int32_t>(own.max_sessions));
  message.set_max_transfers(static_cast<std::int32_t>(own.max_transfers));
  message.set_max_upload_bytes(static_cast<std::int64_t>(own.max_upload_bytes));
  message.set_min_upload_rate(static_cast<std::int64_t>(limits.min_upload_rate));
  message.set_session_quota_bytes(
      static_cast<std::int64_t>(own.session_quota_within(limits.session_quota_bytes)));
  *message.mutable_max_ttl() = to_proto(limits.max_ttl);
  *message.mutable_max_deadline() = to_proto(limits.max_deadline);
  message.set_max_queue_depth(static_cast<std::int32_t>(own.max_queue_depth));
}

void write_device(const Device& device, v1::DeviceInfo& message) {
  message.set_name(device.name());
  message.set_backend(std::string(device.backend()));
  message.set_model(device.model());
  message.set_pool_bytes(static_cast<std::int64_t>(device.budget()->limit_bytes()));
  message.set_reserved_bytes(static_cast<std::int64_t>(device.budget()->reserved_bytes()));
  message.set_healthy(device.healthy());
}

}  // namespace

grpc::ServerUnaryReactor* ServerService::GetCapabilities(grpc::CallbackServerContext* context,
                                                         const v1::GetCapabilitiesRequest* /*request*/,
                                                         v1::Capabilities* response) {
  return answer_at_once(runtime_, *context, "GetCapabilities", [&](const Principal& caller) {
    describe(caller, *response);
    return absl::OkStatus();
  });
}

void ServerService::describe(const Principal& caller, v1::Capabilities& message) const {
  message.set_server_version(kServerVersion);
  message.set_instance(runtime_.instance);
  const auto* operations =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("cumulus.v1.Operations");
  for (int i = 0; i < operations->method_count(); ++i) message.add_operations(operations->method(i)->name());
  for (const DeviceSlot& slot : runtime_.devices) write_device(*slot.device, *message.add_devices());
  message.set_file_root(runtime_.file_root != nullptr);
  for (const std::string_view format : image_formats()) message.add_image_formats(std::string(format));
  write_limits(runtime_.configuration, caller, message);
}

}  // namespace cumulus::server

#include "server/services/server_service.h"

#include <algorithm>

#include "cumulus/v1/operations.pb.h"
#include "server/pipeline/chain_run.h"
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
  message.set_joined_uploads(true);
  message.set_min_upload_rate(static_cast<std::int64_t>(limits.min_upload_rate));
  message.set_session_quota_bytes(
      static_cast<std::int64_t>(own.session_quota_within(limits.session_quota_bytes)));
  *message.mutable_max_ttl() = to_proto(limits.max_ttl);
  *message.mutable_max_deadline() = to_proto(limits.max_deadline);
  message.set_max_queue_depth(static_cast<std::int32_t>(own.max_queue_depth));
  message.set_max_buffers_per_session(static_cast<std::int32_t>(limits.max_buffers_per_session));
  message.set_max_server_sessions(static_cast<std::int32_t>(limits.max_sessions));
  message.set_max_pipeline_steps(kMaxPipelineSteps);
  *message.mutable_default_ttl() = to_proto(limits.default_ttl);
  *message.mutable_stalled_transfer() = to_proto(limits.stalled_transfer);
}

void write_decoding_limits(const Configuration& configuration, v1::Capabilities& message) {
  *message.mutable_decode_time() = to_proto(configuration.limits.decode_time);
  message.set_decoder_bytes(static_cast<std::int64_t>(configuration.limits.decoder_bytes));
  message.set_decoded_images_bytes(static_cast<std::int64_t>(configuration.limits.decoded_images_bytes));
  const DecodeQueue::Limits& decoding = configuration.decoding;
  message.set_max_decode_queue(static_cast<std::int32_t>(decoding.max_waiting));
  message.set_max_decode_queue_per_client(static_cast<std::int32_t>(decoding.max_waiting_per_client));
}

void write_connection_limits(const Configuration::Connections& connections, v1::Capabilities& message) {
  message.set_max_connections_per_client(static_cast<std::int32_t>(connections.limits.per_client));
  message.set_max_streams(connections.max_streams);
  message.set_message_bytes(static_cast<std::int64_t>(connections.message_bytes));
  *message.mutable_half_message() = to_proto(connections.limits.half_message);
  message.set_max_header_bytes(static_cast<std::int32_t>(connections.limits.frames.header_bytes));
  message.set_max_resets(static_cast<std::int32_t>(connections.limits.frames.resets));
  *message.mutable_max_connection_age() = to_proto(connections.max_age);
}

void write_shared_memory_limits(const Configuration::SharedMemory& limits, v1::Capabilities& message) {
  message.set_max_shared_bytes(static_cast<std::int64_t>(limits.max_bytes));
  message.set_max_shared_bytes_per_user(static_cast<std::int64_t>(limits.max_bytes_per_user));
  message.set_max_shared_regions(static_cast<std::int32_t>(limits.max_regions));
  message.set_max_shared_regions_per_user(static_cast<std::int32_t>(limits.max_regions_per_user));
}

void write_shared_device_limits(const Configuration::SharedMemory& limits, v1::Capabilities& message) {
  message.set_max_shared_device_bytes(static_cast<std::int64_t>(limits.max_device_bytes));
  message.set_max_shared_device_bytes_per_user(static_cast<std::int64_t>(limits.max_device_bytes_per_user));
}

bool on_gpu(const DeviceSlot& slot) { return slot.device->space() == Space::kDevice; }

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
  write_decoding_limits(runtime_.configuration, message);
  write_connection_limits(runtime_.configuration.connections, message);
  write_shared_memory_limits(runtime_.configuration.shared_memory, message);
  if (!shared_memory_socket_.empty() && std::any_of(runtime_.devices.begin(), runtime_.devices.end(), on_gpu))
    write_shared_device_limits(runtime_.configuration.shared_memory, message);
  message.set_shared_memory(!shared_memory_socket_.empty());
  message.set_shared_memory_socket(shared_memory_socket_);
}

}  // namespace cumulus::server

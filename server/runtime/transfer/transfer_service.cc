#include "server/runtime/transfer/transfer_service.h"

#include <algorithm>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/runtime/instance.h"
#include "server/runtime/transfer/download.h"
#include "server/runtime/transfer/upload.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kStagingSlots = 64;
constexpr std::size_t kSlotsForUploads = 16;

/// How late a stall or a deadline may be noticed.
absl::Duration watch_interval(absl::Duration max_stall) {
  return std::clamp(max_stall / 4, absl::Milliseconds(1), absl::Milliseconds(250));
}

/// The reactor of a call that does not begin. Deletes itself.
template <class Reactor>
class Refusal final : public Reactor {
 public:
  Refusal(std::string_view rpc, std::string client, const absl::Status& why, Telemetry& telemetry) {
    telemetry.refused(rpc, std::move(client), why);
    this->Finish(to_grpc(with_context(why, rpc)));
  }
  void OnDone() override { delete this; }
};

}  // namespace

TransferService::TransferService(Runtime& runtime)
    : runtime_(runtime), watch_(watch_interval(runtime.configuration.limits.stalled_transfer)) {
  for (const DeviceSlot& slot : runtime.devices) {
    if (slot.device->space() == Space::kHost) continue;
    rings_[slot.device.get()] = StagingRing::create(
        *slot.device,
        {.slots = kStagingSlots, .slot_bytes = kMaxChunkBytes, .kept_for_uploads = kSlotsForUploads});
  }
}

grpc::ServerReadReactor<grpc::ByteBuffer>* TransferService::WriteBuffer(grpc::CallbackServerContext* context,
                                                                        grpc::ByteBuffer* response) {
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok())
    return new Refusal<grpc::ServerReadReactor<grpc::ByteBuffer>>("WriteBuffer", context->peer(),
                                                                  caller.status(), runtime_.telemetry);
  Transfer::Options upload_options = options("WriteBuffer", *context, *std::move(caller));
  upload_options.min_rate = runtime_.configuration.limits.min_upload_rate;
  const auto upload = std::make_shared<Upload>(
      runtime_, joined_, [this](const Device& device) { return find_ring(device); },
      std::move(upload_options), response);
  watch_.add(upload);
  upload->begin();
  return upload.get();
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* TransferService::ReadBuffer(grpc::CallbackServerContext* context,
                                                                        const grpc::ByteBuffer* request) {
  absl::StatusOr<Principal> caller = runtime_.identity->resolve_user(*context);
  if (!caller.ok())
    return new Refusal<grpc::ServerWriteReactor<grpc::ByteBuffer>>("ReadBuffer", context->peer(),
                                                                   caller.status(), runtime_.telemetry);
  const auto download = std::make_shared<Download>(
      runtime_, [this](const Device& device) { return find_ring(device); },
      options("ReadBuffer", *context, *std::move(caller)), context);
  watch_.add(download);
  download->begin(*request);
  return download.get();
}

Transfer::Options TransferService::options(std::string_view method, grpc::CallbackServerContext& context,
                                           Principal caller) const {
  const auto& limits = runtime_.configuration.limits;
  return {method,
          context.peer(),
          std::move(caller),
          CallDeadline::of(context.deadline(), limits.max_deadline),
          limits.stalled_transfer,
          shares_,
          runtime_.telemetry,
          take_trace(context),
          &runtime_.drain,
          check_instance(context, runtime_.instance)};
}

Transfer::Options TransferService::options(std::string_view method, absl::Duration timeout, Principal caller,
                                           TraceContext trace) const {
  const auto& limits = runtime_.configuration.limits;
  const absl::Duration bounded = std::min(timeout, limits.max_deadline + absl::Seconds(1));
  return {.method = method,
          .client = kRegionClient,
          .principal = std::move(caller),
          .deadline = CallDeadline::at(steady_now() + bounded, limits.max_deadline),
          .max_stall = limits.stalled_transfer,
          .shares = shares_,
          .telemetry = runtime_.telemetry,
          .trace = std::move(trace),
          .drain = &runtime_.drain};
}

std::shared_ptr<StagingRing> TransferService::find_ring(const Device& device) const {
  const auto found = rings_.find(&device);
  return found != rings_.end() ? found->second : nullptr;
}

}  // namespace cumulus::server

// How a call's outputs are handed over, and its answer given.

#include <string>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/call.h"
#include "server/pipeline/errors.h"
#include "server/runtime/logging.h"
#include "server/runtime/wire.h"

namespace cumulus::server {

absl::Status OperationCall::deliver(Lane& lane) {
  const absl::Time start = steady_now();
  absl::Status status;
  for (Output& output : outputs_) {
    if (!output.spec.kept) continue;
    status = deliver_output(output);
    if (!status.ok()) return status;
  }
  fill_timings(lane, start);
  return status;
}

absl::Status OperationCall::deliver_output(Output& output) {
  v1::NamedArray& named = *response_.add_arrays();
  named.set_name(output.spec.name);
  if (inline_outputs_) {
    write_array_spec(output.spec.shape, *named.mutable_inline_array()->mutable_spec());
    named.mutable_inline_array()->set_data(output.landing.data(), output.landing.size());
    return absl::OkStatus();
  }
  SessionStore::NewBuffer fresh;
  fresh.admission = admission_.split(align_block(output.spec.shape.bytes()));
  fresh.shape = std::move(output.spec.shape);
  fresh.memory = std::move(output.memory);
  fresh.head.assign(output.landing.begin(), output.landing.end());
  fresh.evictable = options_.output().evictable();
  fresh.ttl = output_ttl_;
  const absl::StatusOr<BufferHandle> buffer = runtime_.sessions.add_buffer(*session_.get(), std::move(fresh));
  if (!buffer.ok()) return buffer.status();
  write_buffer(**buffer, *named.mutable_buffer());
  return absl::OkStatus();
}

void OperationCall::fill_timings(const Lane& lane, absl::Time delivery_start) {
  compute_seconds_ = lane.compute_seconds();
  output_time_ = steady_now() - delivery_start;
  v1::Timings& timings = *response_.mutable_timings();
  *timings.mutable_queue() = to_proto(queue_wait_);
  *timings.mutable_input() = to_proto(input_time_ + upload_time_);
  *timings.mutable_compute() = to_proto(absl::Seconds(compute_seconds_));
  *timings.mutable_output() = to_proto(output_time_);
  timings.set_device(slot_->device->name());
  if (encoded_bytes_ == 0) return;
  *timings.mutable_decode() = to_proto(input_time_);
  timings.set_encoded_bytes(static_cast<std::int64_t>(encoded_bytes_));
}

void OperationCall::answer(const absl::Status& outcome) {
  if (answered_.exchange(true)) return;
  const std::shared_ptr<OperationCall> self = shared_from_this();  // who is answered may let go of the call
  absl::Status status = context_.deadline.named(outcome);
  // What the server stopped was not cancelled by the client.
  if (absl::IsCancelled(outcome) && !cancelled_ && stopped())
    status = slot_->device->healthy() ? draining() : failed_device(*slot_->device);
  inputs_.clear();
  outputs_.clear();
  admission_ = {};
  session_.end();
  if (!status.ok()) response_.Clear();
  const CallRecord record{.method = std::string(run_->name()),
                          .request_id = options_.request_id(),
                          .client = context_.client,
                          .principal = context_.principal.name,
                          .bytes = footprint_bytes_,
                          .seconds = absl::ToDoubleSeconds(steady_now() - begin_time_),
                          .queue_seconds = absl::ToDoubleSeconds(queue_wait_),
                          .input_seconds = absl::ToDoubleSeconds(input_time_ + upload_time_),
                          .compute_seconds = compute_seconds_,
                          .output_seconds = absl::ToDoubleSeconds(output_time_),
                          .status = status,
                          .trace = context_.trace,
                          .ran = succeeded_};
  runtime_.telemetry.count(record);
  respond_(to_grpc(status.ok() ? status : with_context(status, run_->name())));
  log_call(record);
}

}  // namespace cumulus::server

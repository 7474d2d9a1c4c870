#include "server/pipeline/call.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/runtime/exceptions.h"
#include "server/runtime/fault_points.h"
#include "server/runtime/logging.h"
#include "server/runtime/wire.h"

namespace cumulus::server {
namespace {

// What every call takes besides its kernels: to begin and end on the device, and to move what it carries.
constexpr double kFixedSeconds = 50e-6;
constexpr double kBytesPerSecond = 5e9;

absl::Status cancelled() { return absl::CancelledError("the client cancelled the request"); }

}  // namespace

OperationCall::OperationCall(Runtime& runtime, std::unique_ptr<OperationRun> run,
                             const v1::RequestOptions& options, v1::OperationResult& response,
                             Context context, Respond respond)
    : runtime_(runtime),
      run_(std::move(run)),
      options_(options),
      response_(response),
      context_(std::move(context)),
      respond_(std::move(respond)),
      begin_time_(steady_now()) {}

void OperationCall::begin() {
  absl::Status status = check_options();
  if (status.ok()) status = resolve_inputs();
  if (!status.ok()) return answer(status);
  const bool decode = std::any_of(inputs_.begin(), inputs_.end(),
                                  [](const CallInput& input) { return input.needs_decoding(); });
  if (!decode) return admit();
  const absl::Status posted = runtime_.decoders.post(
      context_.principal.name, {[self = shared_from_this(), this] { decode_inputs(); },
                                [self = shared_from_this()] { return self->requested(); }});
  if (!posted.ok()) answer(posted);
}

void OperationCall::cancel() {
  cancelled_ = true;
  if (queued_ && slot_->queue->withdraw(*this)) answer(cancelled());
}

JobClass OperationCall::job_class() const {
  return options_.priority() == v1::BATCH ? JobClass::kBatch : JobClass::kInteractive;
}

bool OperationCall::requested() const {
  return cancelled_ || stopped() || context_.deadline.time <= steady_now();
}

bool OperationCall::stopped() const { return runtime_.drain.over() || !slot_->device->healthy(); }

absl::Status OperationCall::wanted() const {
  if (cancelled_ || stopped()) return cancelled();
  if (context_.deadline.time > steady_now()) return absl::OkStatus();
  return absl::DeadlineExceededError("the deadline passed before the images were decoded");
}

absl::Status OperationCall::check_options() {
  if (const absl::Status id = check_request_id(options_.request_id(), "options.request_id"); !id.ok())
    return id;
  if (!v1::Priority_IsValid(options_.priority())) {
    return bad_field("options.priority",
                     absl::StrCat("is ", options_.priority(), "; use INTERACTIVE or BATCH"));
  }
  if (options_.session().empty()) {
    if (const absl::Status admitted = runtime_.drain.admits(); !admitted.ok()) return admitted;
  } else {
    if (!context_.handles.ok()) return context_.handles;
    absl::StatusOr<SessionUse> session =
        runtime_.sessions.use_session(options_.session(), context_.principal);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
  }
  const auto slot = session_.get() != nullptr ? session_.get()->slot : runtime_.place_call();
  if (!slot.ok()) return slot.status();
  slot_ = *slot;
  if (!slot_->device->healthy()) return failed_device(*slot_->device);
  inline_outputs_ = options_.output().has_inline_array() || session_.get() == nullptr;
  return check_destination();
}

absl::Status OperationCall::check_destination() {
  const v1::Destination& output = options_.output();
  if (inline_outputs_ && (output.has_ttl() || output.evictable())) {
    return bad_field(
        output.has_ttl() ? "options.output.ttl" : "options.output.evictable",
        "is for buffers; these outputs come back inline (name a session to keep them on the device)");
  }
  const absl::StatusOr<absl::Duration> ttl =
      checked_ttl(output.has_ttl(), output.ttl(), "options.output.ttl", absl::InfiniteDuration(),
                  runtime_.configuration.limits.max_ttl);
  if (ttl.ok()) output_ttl_ = *ttl;
  return ttl.status();
}

absl::Status OperationCall::resolve_inputs() {
  const absl::StatusOr<std::vector<SourceField>> sources = run_->sources();
  if (!sources.ok()) return sources.status();
  for (const SourceField& source : *sources) {
    absl::StatusOr<CallInput> input =
        CallInput::resolve(source, session_.get(), context_.principal, runtime_);
    if (!input.ok()) return input.status();
    inputs_.push_back(*std::move(input));
  }
  return absl::OkStatus();
}

void OperationCall::decode_inputs() {
  const absl::Time start = steady_now();
  for (CallInput& input : inputs_) {
    if (!input.needs_decoding()) continue;
    absl::Status status = wanted();
    if (status.ok()) status = decode(input);
    if (!status.ok()) return answer(status);
    encoded_bytes_ += input.encoded_bytes();
  }
  input_time_ = steady_now() - start;
  admit();
}

absl::Status OperationCall::decode(CallInput& input) {
  absl::Status status;
  try {
    status = input.decode(runtime_, *slot_->device, [this] { return wanted(); });
  } catch (...) {  // of a file that is fetched first
    status = translate_exception(*slot_->device, context_.deadline.time);
  }
  if (!status.ok()) runtime_.telemetry.decode_refused(status);
  return status;
}

void OperationCall::admit() {
  const absl::Status status = prepare();
  if (!status.ok() || options_.validate_only()) return answer(status);
  const absl::Status room = runtime_.sessions.check_room(*slot_->device, session_.get(), footprint_bytes_);
  if (!room.ok()) return answer(room);
  queue_time_ = steady_now();
  queued_ = true;
  const absl::Status pushed = slot_->queue->push(shared_from_this(), DeviceQueue::Starts::kCaller);
  if (!pushed.ok()) return answer(pushed);
  // A cancellation that came before the push has not found the job.
  if (cancelled_ && slot_->queue->withdraw(*this)) answer(cancelled());
}

absl::Status OperationCall::reserve() {
  absl::StatusOr<Admission> admission =
      runtime_.sessions.admit(*slot_->device, session_.get(), footprint_bytes_);
  if (!admission.ok()) return admission.status();
  admission_ = *std::move(admission);
  return absl::OkStatus();
}

absl::Status OperationCall::prepare() {
  std::vector<InputArray> described;
  for (const CallInput& input : inputs_) described.push_back(input.describe());
  const absl::Status planned = run_->make_plan(described);
  if (!planned.ok()) return planned;
  const Space space = slot_->device->space();
  for (OutputSpec& spec : run_->outputs()) outputs_.push_back({std::move(spec), {}, {}, {}});
  scratch_bytes_ = run_->scratch_bytes(*slot_->device);
  footprint_bytes_ = align_block(scratch_bytes_);
  for (const CallInput& input : inputs_) footprint_bytes_ += input.upload_bytes(space);
  // Of outputs that will be copied into smaller buffers, both count.
  const std::size_t copies = run_->sized_by_its_run() && !inline_outputs_ ? 2 : 1;
  for (const Output& output : outputs_) footprint_bytes_ += copies * align_block(output.spec.shape.bytes());
  cost_seconds_ = predict_seconds();
  return run_->sized_by_its_run() ? absl::OkStatus() : check_outputs();
}

double OperationCall::predict_seconds() const {
  const Cost predicted = run_->cost();
  std::size_t moved = 0;
  for (const CallInput& input : inputs_) moved += input.upload_bytes(slot_->device->space());
  // Inline outputs are as small as max_inline_bytes, and buffers stay where they are.
  const double kernels = slot_->device->space() == Space::kHost
                             ? predicted.core_seconds / slot_->device->cores()
                             : predicted.gpu_seconds;
  return kFixedSeconds + static_cast<double>(moved) / kBytesPerSecond + kernels;
}

absl::Status OperationCall::check_outputs() const {
  const auto& limits = runtime_.configuration.limits;
  std::size_t total = 0;
  for (const Output& output : outputs_) {
    const std::size_t bytes = output.spec.shape.bytes();
    if (output.spec.kept) total += bytes;
    if (bytes > limits.max_buffer_bytes) {
      return exhausted(
          "limits:max_buffer_bytes",
          absl::StrCat("output ", output.spec.name, " would have ", bytes, " bytes; the server allows ",
                       limits.max_buffer_bytes, " (max_buffer_bytes) in one array"));
    }
  }
  if (inline_outputs_ && total > limits.max_inline_bytes) {
    return exhausted("limits:max_inline_bytes",
                     absl::StrCat("the outputs have ", total, " bytes; at most ", limits.max_inline_bytes,
                                  " (max_inline_bytes) come back inline: name a session, keep them on the "
                                  "device and read them with "
                                  "ReadBuffer"));
  }
  return absl::OkStatus();
}

void OperationCall::submit(Lane& lane) noexcept {
  submit_time_ = steady_now();
  queue_wait_ = submit_time_ - queue_time_;
  kill_worker_if_due();
  slow_down_device();
  if (fault_due(FaultPoint::STICKY_ERROR)) {
    slot_->device->mark_unhealthy();
    submitted_ = failed_device(*slot_->device);
    return;
  }
  try {
    lane.take(job_class());
    std::visit([&](auto& executor) { submit_to(executor, lane); }, lane.executor());
  } catch (...) {
    submitted_ = translate_exception(*slot_->device, context_.deadline.time);
  }
}

template <class E>
void OperationCall::submit_to(E& executor, Lane& lane) {
  executor.set_interrupt(this);
  executor.reserve_scratch(scratch_bytes_);
  const Inputs<E::kSpace> inputs = place_inputs(executor, lane);
  const Outputs<E::kSpace> outputs = place_outputs<E>(lane);
  upload_time_ = steady_now() - submit_time_;
  lane.mark_compute_begin();
  fault_in_kernel_if_due(executor);
  run_->run(executor, inputs, outputs, lane.landing().data());
  lane.mark_compute_end();
  if (!run_->sized_by_its_run()) download_outputs(executor, lane);
}

template <class E>
void OperationCall::download_outputs(E& executor, Lane& lane) {
  std::size_t used = kReportBytes;
  for (Output& output : outputs_) {
    if (!output.spec.kept) continue;
    const std::size_t wanted = output.spec.shape.bytes();
    const std::size_t bytes = inline_outputs_ ? wanted : std::min(wanted, kHeadBytes);
    output.landing = lane.landing().subspan(used, bytes);
    executor.download(output.memory.span<E::kSpace>().subspan(0, bytes),
                      {output.landing.data(), output.landing.size()});
    used += bytes;
  }
}

template <class E>
Inputs<E::kSpace> OperationCall::place_inputs(E& executor, Lane& lane) {
  std::vector<Span<const std::byte, E::kSpace>> placed;
  for (const CallInput& input : inputs_) {
    if (const ResidentBuffer* buffer = input.resident()) {
      // A buffer that its run sized may lie in a block that is a little larger.
      placed.push_back(buffer->memory.span<E::kSpace>().subspan(0, buffer->shape.bytes()));
      continue;
    }
    const std::span<const std::byte> host = input.host_bytes();
    if constexpr (E::kSpace == Space::kHost) {
      placed.push_back({host.data(), host.size()});
    } else {
      uploads_.push_back(slot_->device->allocate_on(lane, host.size()));
      const auto target = uploads_.back().template span<E::kSpace>();
      executor.upload({host.data(), host.size()}, target);
      placed.push_back(target);
    }
  }
  return Inputs<E::kSpace>(std::move(placed));
}

template <class E>
Outputs<E::kSpace> OperationCall::place_outputs(Lane& lane) {
  std::vector<Span<std::byte, E::kSpace>> placed;
  for (Output& output : outputs_) {
    output.memory = slot_->device->allocate_on(lane, output.spec.shape.bytes());
    placed.push_back(output.memory.span<E::kSpace>());
  }
  return Outputs<E::kSpace>(std::move(placed));
}

absl::Status OperationCall::fit_outputs(Lane& lane) {
  std::vector<ArrayShape> shapes = run_->final_shapes(lane.landing().data());
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].spec.shape = std::move(shapes[i]);
  const absl::Status status = check_outputs();
  if (!status.ok()) return status;
  const auto fit = [&]<class E>(E& executor) {
    if constexpr (E::kSpace == Space::kDevice)
      executor.bind_thread();  // this thread is the device's, not the lane's
    if (!inline_outputs_) {
      for (Output& output : outputs_) shrink_output(executor, lane, output);
    }
    download_outputs(executor, lane);
  };
  try {
    std::visit(fit, lane.executor());
  } catch (...) {  // some of it may be on its way: the answer waits until the lane is idle
    submitted_ = translate_exception(*slot_->device, context_.deadline.time);
  }
  return absl::OkStatus();
}

template <class E>
void OperationCall::shrink_output(E& executor, Lane& lane, Output& output) {
  const std::size_t bytes = output.spec.shape.bytes();
  if (align_block(bytes) == align_block(output.memory.bytes())) return;
  BufferMemory memory = slot_->device->allocate_on(lane, bytes);
  output.bound = std::exchange(output.memory, std::move(memory));
  executor.copy(output.bound.span<E::kSpace>().subspan(0, bytes), output.memory.span<E::kSpace>());
}

bool OperationCall::finish(Lane& lane, const absl::Status& device) noexcept {
  absl::Status status = submitted_.ok() ? device : submitted_;
  try {
    if (status.ok() && !concluded_) {
      concluded_ = true;
      status = run_->conclude(lane.landing().data());
      if (status.ok() && run_->sized_by_its_run()) {
        status = fit_outputs(lane);
        if (status.ok()) return false;
      }
    }
    std::visit(
        [](auto& executor) {
          executor.set_interrupt(nullptr);
          executor.release_scratch();
        },
        lane.executor());
    uploads_.clear();
    if (status.ok()) status = deliver(lane);
    succeeded_ = status.ok();
  } catch (...) {
    status = translate_exception(*slot_->device, context_.deadline.time);
  }
  answer(status);
  return true;
}

}  // namespace cumulus::server

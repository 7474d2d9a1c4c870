#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/v1/array.pb.h"
#include "server/pipeline/inputs.h"
#include "server/pipeline/operation_run.h"
#include "server/runtime/call_deadline.h"
#include "server/runtime/job.h"
#include "server/runtime/runtime.h"
#include "server/runtime/trace.h"

namespace cumulus::server {

/// The one path that every operation's call takes: resolve inputs, decode, validate, admit, wait, run, place
/// outputs, answer. What is the operation's own is its OperationRun.
///
/// `begin` and `cancel` come on gRPC's threads and do not block. The answer is given exactly once.
class OperationCall : public Job, public std::enable_shared_from_this<OperationCall> {
 public:
  struct Context {
    CallDeadline deadline;
    std::string client;  // the peer, for the log
    Principal principal = {};
    TraceContext trace = {};
    absl::Status handles = {};  // why those that the call names cannot be this instance's
  };
  /// Called once, with the call's outcome, after `response` has been filled.
  using Respond = std::function<void(grpc::Status)>;

  OperationCall(Runtime& runtime, std::unique_ptr<OperationRun> run, const v1::RequestOptions& options,
                v1::OperationResult& response, Context context, Respond respond);

  void begin();
  void cancel();

  absl::Status reserve() override;
  void submit(Lane& lane) noexcept override;
  bool finish(Lane& lane, const absl::Status& device) noexcept override;
  void abandon(const absl::Status& why) noexcept override { answer(why); }
  JobClass job_class() const override;
  absl::Time deadline() const override { return context_.deadline.time; }
  const Principal& principal() const override { return context_.principal; }
  std::string_view operation() const override { return run_->name(); }
  double cost_seconds() const override { return cost_seconds_; }
  bool succeeded() const override { return succeeded_; }
  bool requested() const override;

 private:
  struct Output {
    OutputSpec spec;
    BufferMemory memory;
    std::span<std::byte> landing;  // its head, or all of it where it goes inline
    BufferMemory bound;            // where the kernels wrote it, if that was larger than it is
  };

  absl::Status check_options();
  absl::Status check_destination();
  absl::Status resolve_inputs();
  void decode_inputs();
  absl::Status decode(CallInput& input);
  /// Whether the server ends its calls: its drain is over, or the device has failed.
  bool stopped() const;
  /// CANCELLED or DEADLINE_EXCEEDED once nobody waits for the answer any more.
  absl::Status wanted() const;
  void admit();
  absl::Status prepare();
  absl::Status check_outputs() const;
  double predict_seconds() const;
  template <class E>
  void submit_to(E& executor, Lane& lane);
  template <class E>
  Inputs<E::kSpace> place_inputs(E& executor, Lane& lane);
  template <class E>
  Outputs<E::kSpace> place_outputs(Lane& lane);
  template <class E>
  void download_outputs(E& executor, Lane& lane);
  absl::Status fit_outputs(Lane& lane);
  template <class E>
  void shrink_output(E& executor, Lane& lane, Output& output);
  absl::Status deliver(Lane& lane);
  absl::Status deliver_output(Output& output);
  void fill_timings(const Lane& lane, absl::Time delivery_start);
  void answer(const absl::Status& outcome);

  Runtime& runtime_;
  const std::unique_ptr<OperationRun> run_;
  const v1::RequestOptions& options_;
  v1::OperationResult& response_;
  const Context context_;
  Respond respond_;

  SessionUse session_;
  DeviceSlot* slot_ = nullptr;
  bool inline_outputs_ = false;
  absl::Duration output_ttl_ = absl::InfiniteDuration();
  std::vector<CallInput> inputs_;
  std::vector<BufferMemory> uploads_;
  std::vector<Output> outputs_;
  std::size_t scratch_bytes_ = 0;
  std::size_t footprint_bytes_ = 0;
  double cost_seconds_ = 0;
  Admission admission_;
  absl::Status submitted_ = absl::OkStatus();
  bool concluded_ = false;
  bool succeeded_ = false;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> queued_ = false;  // or about to be: `slot_` is known

  absl::Time begin_time_;
  absl::Duration input_time_;
  std::size_t encoded_bytes_ = 0;
  absl::Time queue_time_;
  absl::Time submit_time_;
  absl::Duration upload_time_;
  absl::Duration queue_wait_;
  double compute_seconds_ = 0;
  absl::Duration output_time_;
};

}  // namespace cumulus::server

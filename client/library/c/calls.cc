#include <absl/time/time.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "library/brief_wait.h"
#include "library/c/channel.h"
#include "library/c/handles.h"
#include "library/wire.h"

// NOLINTBEGIN(readability-identifier-naming): C's names
struct cumulus_call {
  /// What a call and its handle share: either may end first.
  struct Answer {
    std::mutex mutex = {};  // of what follows
    std::condition_variable changed = {};
    std::atomic<bool> ended = false;
    absl::Status status = {};
    grpc::Slice message = {};

    void take(absl::StatusOr<grpc::ByteBuffer> answered);
  };

  const std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  const cumulus::Cancellation cancellation = {};
  std::atomic<bool> looked_for = false;  // as it is once: what comes later is not a short call's answer
};

void cumulus_call::Answer::take(absl::StatusOr<grpc::ByteBuffer> answered) {
  const std::lock_guard lock(mutex);
  if (answered.ok()) {
    status = cumulus::wire::status_from_grpc(answered->DumpToSingleSlice(&message));
  } else {
    status = std::move(answered).status();
  }
  ended = true;
  changed.notify_all();
}
// NOLINTEND(readability-identifier-naming)

namespace cumulus::c {
namespace {

Outcome start_call(const cumulus_channel& channel, const cumulus_session_name* session,
                   const cumulus_request& request, cumulus_call** call) {
  if (Outcome checked = check_size(request, "request", "CUMULUS_REQUEST"); !checked.ok()) return checked;
  if (Outcome named = require({{"request.method", request.method}}); !named.ok()) return named;
  if (request.message == nullptr && request.message_size > 0)
    return refuse("request.message", "is NULL, and request.message_size is not 0");
  if (Outcome read = check_timeout(request.timeout_seconds, "request.timeout_seconds"); !read.ok())
    return read;
  auto made = std::make_unique<cumulus_call>();
  CallOptions options;
  options.timeout = absl::Seconds(request.timeout_seconds);
  options.cancellation = made->cancellation;
  const grpc::Slice message(request.message, request.message_size);
  channel.connection->call(request.method, grpc::ByteBuffer(&message, 1), options,
                           session == nullptr ? CallContext() : context_of(*session),
                           [answer = made->answer](absl::StatusOr<grpc::ByteBuffer> answered) {
                             answer->take(std::move(answered));
                           });
  *call = made.release();
  return absl::OkStatus();
}

void look_for(const cumulus_call::Answer& answer) {
  const BriefWait wait;
  while (!answer.ended && wait.goes_on()) continue;
}

Outcome result_of(cumulus_call::Answer& answer, const void** message, std::size_t* size) {
  std::unique_lock lock(answer.mutex);
  answer.changed.wait(lock, [&] { return answer.ended.load(); });
  if (!answer.status.ok()) return answer.status;
  *message = answer.message.begin();
  *size = answer.message.size();
  return absl::OkStatus();
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_channel_start_call(cumulus_channel* channel, const cumulus_session_name* session,
                                        const cumulus_request* request, cumulus_call** call,
                                        cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"channel", channel}, {"request", request}, {"call", call}});
    if (call != nullptr) *call = nullptr;
    return given.ok() ? cumulus::c::start_call(*channel, session, *request, call) : given;
  });
}

cumulus_code cumulus_channel_call(cumulus_channel* channel, const cumulus_session_name* session,
                                  const cumulus_request* request, cumulus_answer* answer,
                                  cumulus_status* status) {
  const cumulus_code given = cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    return cumulus::c::require({{"answer", answer}});
  });
  if (given != CUMULUS_OK) return given;
  answer->message = nullptr;
  answer->size = 0;
  const cumulus_code begun = cumulus_channel_start_call(channel, session, request, &answer->call, status);
  if (begun != CUMULUS_OK || cumulus_call_wait(answer->call, answer->seconds) == 0) return begun;
  return cumulus_call_result(answer->call, &answer->message, &answer->size, status);
}

int32_t cumulus_call_wait(cumulus_call* call, double seconds) {
  cumulus_call::Answer& answer = *call->answer;
  if (seconds > 0 && !call->looked_for.exchange(true)) cumulus::c::look_for(answer);
  std::unique_lock lock(answer.mutex);
  return answer.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                 [&] { return answer.ended.load(); })
             ? 1
             : 0;
}

void cumulus_call_cancel(cumulus_call* call) { call->cancellation.cancel(); }

cumulus_code cumulus_call_result(cumulus_call* call, const void** message, size_t* size,
                                 cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"call", call}, {"message", message}, {"size", size}});
    return given.ok() ? cumulus::c::result_of(*call->answer, message, size) : given;
  });
}

void cumulus_call_release(cumulus_call* call) {
  if (call == nullptr) return;
  call->cancellation.cancel();
  delete call;
}

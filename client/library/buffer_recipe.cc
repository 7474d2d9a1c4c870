// How buffers are made again on another server.
#include <algorithm>
#include <utility>

#include "cumulus/v1/array.pb.h"
#include "library/buffer_state.h"
#include "library/operation_access.h"
#include "library/operation_request.h"
#include "library/transfer.h"
#include "library/transfer_retry.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

/// Makes buffers again under one lease.
class Replay {
 public:
  Replay(SessionState& session, const Lease& lease, const Outage& outage)
      : session_(session), lease_(lease), outage_(outage) {}
  /// Drops what was made only for others to be made from it.
  ~Replay() {
    for (const std::shared_ptr<BufferState>& state : unheld_) {
      const std::lock_guard lock(state->mutex);
      delete_buffer(lease_, state->name);
      state->generation = BufferState::kNowhere;
    }
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  absl::Status make(const std::shared_ptr<BufferState>& state) {
    if (state == nullptr || state->session.get() != &session_)
      return absl::OkStatus();  // the server's to refuse
    {
      const std::lock_guard lock(state->mutex);
      if (state->generation == lease_.generation) return absl::OkStatus();
    }
    if (state->upload.has_value()) return upload(state);
    if (state->production != nullptr) return produce(*state->production);
    return absl::NotFoundError(
        "a buffer is lost with its server, and comes from too long a chain of operations to be made again: "
        "download the end of such a chain now and then and upload it");
  }

 private:
  absl::Status upload(const std::shared_ptr<BufferState>& state) {
    const UploadRecipe& recipe = *state->upload;
    v1::WriteSpec spec;
    spec.set_session(lease_.name);
    wire::encode_spec(state->type, state->shape, *spec.mutable_spec());
    if (recipe.ttl.has_value()) wire::encode_duration(*recipe.ttl, *spec.mutable_ttl());
    spec.set_evictable(recipe.evictable);
    UploadOptions options;
    options.call = outage_.options();
    const absl::StatusOr<Uploaded> uploaded = write_buffer(*lease_.connection, lease_.context(), spec,
                                                           recipe.array.bytes(), options, Checksum::kWanted);
    if (!uploaded.ok()) return uploaded.status();
    if (uploaded->checksum != recipe.checksum) {
      delete_buffer(lease_, uploaded->buffer.name());
      return absl::DataLossError(
          "an array has to be uploaded again, as its server has restarted, and is not what it was: leave its "
          "memory alone until the buffer and all that was made from it are gone (SessionOptions::recreate)");
    }
    adopt(state, uploaded->buffer.name());
    return absl::OkStatus();
  }

  absl::Status produce(const Production& production) {
    const auto& request = OperationAccess::request(production.operation);
    std::vector<std::string> names;
    for (const std::shared_ptr<BufferState>& input : request.buffers) {
      if (absl::Status made = make(input); !made.ok()) return made;
      names.push_back(input != nullptr ? name_of(*input) : "");
    }
    const absl::StatusOr<grpc::ByteBuffer> message = request.encode(names, lease_.name, production.options);
    if (!message.ok()) return message.status();
    absl::StatusOr<grpc::ByteBuffer> answer =
        lease_.connection->call_and_wait(request.method, *message, outage_.options(), lease_.context());
    if (!answer.ok()) return answer.status();
    v1::OperationResult result;
    if (absl::Status parsed = wire::parse(*answer, result); !parsed.ok()) return parsed;
    for (const v1::NamedArray& array : result.arrays()) take_output(production, array);
    return absl::OkStatus();
  }

  void take_output(const Production& production, const v1::NamedArray& array) {
    const auto output = std::find_if(production.outputs.begin(), production.outputs.end(),
                                     [&](const auto& each) { return each.first == array.name(); });
    const auto state = output != production.outputs.end() ? output->second.lock() : nullptr;
    if (state != nullptr) {
      adopt(state, array.buffer().name());
    } else if (array.has_buffer()) {
      delete_buffer(lease_, array.buffer().name());
    }
  }

  void adopt(const std::shared_ptr<BufferState>& state, const std::string& name) {
    const std::lock_guard lock(state->mutex);
    state->name = name;
    state->generation = lease_.generation;
    if (state->released) unheld_.push_back(state);
  }

  SessionState& session_;
  const Lease& lease_;
  const Outage& outage_;
  std::vector<std::shared_ptr<BufferState>> unheld_;
};

}  // namespace

void delete_buffer(const Lease& lease, const std::string& name) {
  v1::DeleteBufferRequest request;
  request.set_name(name);
  request.set_allow_missing(true);
  CallOptions options;
  options.timeout = absl::Seconds(10);
  CallContext context = lease.context();
  context.outlasts_breaks = true;  // a buffer that is gone already is no error
  lease.connection->call("/cumulus.v1.Sessions/DeleteBuffer", wire::serialize(request), options, context,
                         [](const absl::StatusOr<grpc::ByteBuffer>&) {});
}

absl::StatusOr<std::optional<std::vector<std::string>>> names_under(
    const SessionState& session, const Lease& lease,
    const std::vector<std::shared_ptr<BufferState>>& buffers) {
  std::vector<std::string> names;
  for (const std::shared_ptr<BufferState>& state : buffers) {
    if (state == nullptr) {  // of a handle that was moved away
      names.emplace_back();
      continue;
    }
    const std::lock_guard lock(state->mutex);
    const bool lost = state->session.get() == &session && state->generation != lease.generation;
    if (lost && session.recreates()) {
      if (!state->released) return std::nullopt;
      return absl::NotFoundError(
          "the operation reads a buffer whose handle is gone; keep it until the call's end");
    }
    names.push_back(state->name);
  }
  return names;
}

absl::Status restore(SessionState& session, const Lease& lease,
                     const std::vector<std::shared_ptr<BufferState>>& buffers, const Outage& outage) {
  if (!session.recreates()) return absl::OkStatus();
  const std::lock_guard turn(session.replays());
  Replay replay(session, lease, outage);
  absl::Status status;
  for (const std::shared_ptr<BufferState>& buffer : buffers) {
    if (status.ok()) status = replay.make(buffer);
  }
  return status;
}

absl::Status download_into(const std::shared_ptr<BufferState>& buffer, std::span<std::byte> destination,
                           const DownloadOptions& options) {
  SessionState& session = *buffer->session;
  session.lease()->connection->knock(destination);
  DownloadOptions rest = options;
  const absl::Time deadline =
      session.server()->deadline(options.call, transfer_allowance(destination.size()));
  Outage outage(deadline, session.server()->max_outage(), options.call.cancellation);
  while (true) {
    const std::shared_ptr<const Lease> lease = session.lease();
    absl::Status status = restore(session, *lease, {buffer}, outage);
    if (status.ok()) {
      rest.call.timeout = deadline - steady_now();
      status = read_buffer(*lease->connection, lease->context(), name_of(*buffer), destination, rest);
    }
    if (status.ok()) return status;
    if (absl::Status again = session.go_on_after(status, *lease, outage); !again.ok()) return again;
  }
}

}  // namespace cumulus

#include "cumulus/session.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "cumulus/v1/transfer.pb.h"
#include "library/brief_wait.h"
#include "library/buffer_state.h"
#include "library/run_operation.h"
#include "library/shared_memory/array_upload.h"
#include "library/transfer.h"
#include "library/transfer_retry.h"
#include "proto/steady_time.h"

namespace cumulus {

absl::StatusOr<Buffer> BufferAccess::make(const std::shared_ptr<SessionState>& session, const Lease& lease,
                                          const v1::Buffer& buffer) {
  absl::StatusOr<wire::Spec> spec = wire::decode_spec(buffer.spec());
  if (!spec.ok()) return spec.status();
  auto state =
      std::make_shared<BufferState>(session, spec->type, std::move(spec->shape), buffer.size_bytes());
  state->name = buffer.name();
  state->generation = lease.generation;
  return Buffer(std::move(state));
}

Buffer::Buffer(std::shared_ptr<BufferState> state) : state_(std::move(state)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    state_ = std::move(other.state_);
  }
  return *this;
}

Buffer::~Buffer() { release(); }

std::string Buffer::name() const { return name_of(*state_); }
ElementType Buffer::type() const { return state_->type; }
const Shape& Buffer::shape() const { return state_->shape; }
std::int64_t Buffer::size_bytes() const { return state_->size_bytes; }

void Buffer::release() {
  if (state_ == nullptr || state_->session->closed()) return;
  const std::shared_ptr<const Lease> lease = state_->session->lease();
  const std::lock_guard lock(state_->mutex);
  state_->released = true;
  if (std::exchange(state_->generation, BufferState::kNowhere) == lease->generation)
    delete_buffer(*lease, state_->name);
}

v1::WriteSpec write_spec(const std::string& session, ElementType type, const Shape& shape,
                         const UploadOptions& options) {
  v1::WriteSpec spec;
  spec.set_session(session);
  wire::encode_spec(type, shape, *spec.mutable_spec());
  if (options.ttl.has_value()) wire::encode_duration(*options.ttl, *spec.mutable_ttl());
  spec.set_evictable(options.evictable);
  spec.set_request_id(options.call.request_id);
  return spec;
}

namespace {

absl::Status check_connections(std::string_view what, int connections) {
  if (connections >= 0 && connections <= ConnectionCount::kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(what), ": connections is ", connections,
                                                 "; 1 to ", ConnectionCount::kMost,
                                                 " is right, or 0 for a number by the array's size"));
}

absl::StatusOr<Buffer> upload_array(const std::shared_ptr<SessionState>& session, const ArrayView& array,
                                    const UploadOptions& options) {
  const UploadKnock knock = session->lease()->connection->knock_for_upload(array.bytes());
  const absl::StatusOr<std::int64_t> count = element_count(array.shape());
  if (!count.ok()) return count.status();
  const std::size_t wanted = static_cast<std::size_t>(*count) * element_bytes(array.type());
  if (wanted != array.bytes().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "upload: the shape needs ", wanted, " bytes, and the memory given has ", array.bytes().size()));
  }
  if (absl::Status checked = check_connections("upload", options.connections); !checked.ok()) return checked;
  UploadOptions rest = options;
  const absl::Time deadline = session->server()->deadline(options.call, transfer_allowance(wanted));
  Outage outage(deadline, session->server()->max_outage(), options.call.cancellation);
  while (true) {
    const std::shared_ptr<const Lease> lease = session->lease();
    rest.call.timeout = deadline - steady_now();
    const absl::StatusOr<Uploaded> uploaded = write_buffer(
        *lease->connection, lease->context(), write_spec(lease->name, array.type(), array.shape(), options),
        array.bytes(), rest, session->recreates() ? Checksum::kWanted : Checksum::kUnwanted);
    if (uploaded.ok()) {
      absl::StatusOr<Buffer> buffer = BufferAccess::make(session, *lease, uploaded->buffer);
      if (buffer.ok() && session->recreates()) {
        BufferAccess::state(*buffer)->upload =
            UploadRecipe{array, options.keep, options.ttl, options.evictable, uploaded->checksum};
      }
      return buffer;
    }
    if (absl::Status again = session->go_on_after(uploaded.status(), *lease, outage); !again.ok())
      return again;
  }
}

absl::Status download_checked(const Buffer& buffer, std::span<std::byte> destination,
                              const DownloadOptions& options) {
  if (destination.size() != static_cast<std::size_t>(buffer.size_bytes())) {
    return absl::InvalidArgumentError(absl::StrCat("download: the buffer has ", buffer.size_bytes(),
                                                   " bytes, and the destination ", destination.size()));
  }
  if (absl::Status checked = check_connections("download", options.connections); !checked.ok())
    return checked;
  return download_into(BufferAccess::state(buffer), destination, options);
}

absl::StatusOr<Array> download_array(const Buffer& buffer, const DownloadOptions& options) {
  absl::StatusOr<Array> array = Array::allocate(buffer.type(), buffer.shape());
  if (!array.ok()) return array;
  if (absl::Status status = download_checked(buffer, array->mutable_bytes(), options); !status.ok())
    return status;
  return array;
}

}  // namespace

Session::Session(std::shared_ptr<SessionState> state) : state_(std::move(state)) {}

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

Session::~Session() { close(); }

void Session::close() {
  if (state_ == nullptr) return;
  state_->close();
  const std::shared_ptr<const Lease> lease = state_->lease();
  v1::DeleteSessionRequest request;
  request.set_name(lease->name);
  CallOptions options;
  options.timeout = absl::Seconds(2);
  // Best effort: without an answer the lease's end deletes the session.
  (void)lease->connection->call_and_wait("/cumulus.v1.Sessions/DeleteSession", wire::serialize(request),
                                         options, lease->context());
}

std::string Session::name() const { return state_->lease()->name; }
std::string Session::device() const { return state_->lease()->device; }
std::string Session::instance() const { return state_->lease()->instance; }
std::string Session::endpoint() const { return state_->lease()->endpoint; }

absl::Status Session::renew(const CallOptions& options) const {
  const absl::Time deadline = state_->server()->deadline(options);
  Outage outage(deadline, state_->server()->max_outage(), options.cancellation);
  const std::shared_ptr<const Lease> lease = state_->lease();
  v1::GetSessionRequest request;
  request.set_name(lease->name);
  const absl::Status renewed =
      lease->connection
          ->call_and_wait<v1::Session>("/cumulus.v1.Sessions/GetSession", request, options, lease->context())
          .status();
  // Either way it has been renewed then.
  return renewed.ok() ? renewed : state_->go_on_after(renewed, *lease, outage);
}

absl::StatusOr<Array> Session::allocate_shared(ElementType type, Shape shape) const {
  return allocate_shared_array(state_->lease()->connection->shared_memory(), type, std::move(shape));
}

absl::StatusOr<Buffer> Session::upload(const ArrayView& array, const UploadOptions& options) const {
  return upload_array(state_, array, options);
}

std::future<absl::StatusOr<Buffer>> Session::upload_async(const ArrayView& array,
                                                          const UploadOptions& options) const {
  return std::async(std::launch::async,
                    [state = state_, array, options] { return upload_array(state, array, options); });
}

absl::Status Session::download(const Buffer& buffer, std::span<std::byte> destination,
                               const DownloadOptions& options) const {
  return download_checked(buffer, destination, options);
}

absl::StatusOr<Array> Session::download(const Buffer& buffer, const DownloadOptions& options) const {
  return download_array(buffer, options);
}

std::future<absl::Status> Session::download_async(const Buffer& buffer, std::span<std::byte> destination,
                                                  const DownloadOptions& options) const {
  return std::async(std::launch::async, [&buffer, destination, options] {
    return download_checked(buffer, destination, options);
  });
}

std::future<absl::StatusOr<Array>> Session::download_async(const Buffer& buffer,
                                                           const DownloadOptions& options) const {
  return std::async(std::launch::async, [&buffer, options] { return download_array(buffer, options); });
}

absl::StatusOr<Result> Session::run(const Operation& operation, const RunOptions& options) const {
  return get_soon(run_async(operation, options));
}

std::future<absl::StatusOr<Result>> Session::run_async(const Operation& operation,
                                                       const RunOptions& options) const {
  return run_to_future(*state_->server(), state_, operation, options);
}

void Session::run_async(const Operation& operation, const RunOptions& options,
                        std::function<void(absl::StatusOr<Result>)> done) const {
  run_to_callback(*state_->server(), state_, operation, options, std::move(done));
}

}  // namespace cumulus

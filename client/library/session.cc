#include "cumulus/session.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "cumulus/v1/transfer.pb.h"
#include "library/run_operation.h"
#include "library/session_state.h"
#include "library/transfer.h"

namespace cumulus {

void SessionState::keep_alive(absl::Duration ttl) {
  const std::lock_guard lock(mutex);
  if (closed) return;
  renewal = std::make_unique<grpc::Alarm>();
  // Weak: a renewal that is due keeps nothing alive.
  const auto renew = [weak = weak_from_this(), ttl](bool due) {
    const auto self = weak.lock();
    if (!due || self == nullptr) return;
    v1::GetSessionRequest request;
    request.set_name(self->name);
    CallOptions options;
    options.timeout = ttl / 3;
    const auto renewed = [weak, ttl](const absl::StatusOr<grpc::ByteBuffer>& answer) {
      const auto session = weak.lock();
      if (session != nullptr && !absl::IsNotFound(answer.status())) session->keep_alive(ttl);
    };
    self->connection->call("/cumulus.v1.Sessions/GetSession", wire::serialize(request), options, renewed);
  };
  renewal->Set(connection->queue(), absl::ToChronoTime(absl::Now() + ttl / 3), EventLoop::tag(renew));
}

void SessionState::close() {
  const std::lock_guard lock(mutex);
  closed = true;
  if (renewal != nullptr) renewal->Cancel();
}

absl::StatusOr<Buffer> BufferAccess::make(const std::shared_ptr<SessionState>& session,
                                          const v1::Buffer& buffer) {
  absl::StatusOr<wire::Spec> spec = wire::decode_spec(buffer.spec());
  if (!spec.ok()) return spec.status();
  return Buffer(session, buffer.name(), spec->type, std::move(spec->shape), buffer.size_bytes());
}

Buffer::Buffer(std::shared_ptr<SessionState> session, std::string name, ElementType type, Shape shape,
               std::int64_t size_bytes)
    : session_(std::move(session)),
      name_(std::move(name)),
      type_(type),
      shape_(std::move(shape)),
      size_bytes_(size_bytes) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    session_ = std::move(other.session_);
    name_ = std::move(other.name_);
    type_ = other.type_;
    shape_ = std::move(other.shape_);
    size_bytes_ = other.size_bytes_;
  }
  return *this;
}

Buffer::~Buffer() { release(); }

void Buffer::release() {
  if (session_ == nullptr) return;
  {
    const std::lock_guard lock(session_->mutex);
    if (session_->closed) return;
  }
  v1::DeleteBufferRequest request;
  request.set_name(name_);
  request.set_allow_missing(true);
  CallOptions options;
  options.timeout = absl::Seconds(10);
  // Nobody is left to tell of a failure; the session's end releases the buffer then.
  session_->connection->call("/cumulus.v1.Sessions/DeleteBuffer", wire::serialize(request), options,
                             [](const absl::StatusOr<grpc::ByteBuffer>&) {});
}

namespace {

absl::StatusOr<Buffer> upload_array(const std::shared_ptr<SessionState>& session, const ArrayView& array,
                                    const UploadOptions& options) {
  const absl::StatusOr<std::int64_t> count = element_count(array.shape());
  if (!count.ok()) return count.status();
  const std::size_t wanted = static_cast<std::size_t>(*count) * element_bytes(array.type());
  if (wanted != array.bytes().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "upload: the shape needs ", wanted, " bytes, and the memory given has ", array.bytes().size()));
  }
  v1::WriteSpec spec;
  spec.set_session(session->name);
  wire::encode_spec(array.type(), array.shape(), *spec.mutable_spec());
  if (options.ttl.has_value()) wire::encode_duration(*options.ttl, *spec.mutable_ttl());
  spec.set_evictable(options.evictable);
  spec.set_request_id(options.call.request_id);
  const absl::StatusOr<v1::Buffer> buffer = write_buffer(*session->connection, spec, array.bytes(), options);
  if (!buffer.ok()) return buffer.status();
  return BufferAccess::make(session, *buffer);
}

absl::Status download_into(const SessionState& session, const Buffer& buffer,
                           std::span<std::byte> destination, const DownloadOptions& options) {
  if (destination.size() != static_cast<std::size_t>(buffer.size_bytes())) {
    return absl::InvalidArgumentError(absl::StrCat("download: the buffer has ", buffer.size_bytes(),
                                                   " bytes, and the destination ", destination.size()));
  }
  return read_buffer(*session.connection, buffer.name(), destination, options);
}

absl::StatusOr<Array> download_array(const SessionState& session, const Buffer& buffer,
                                     const DownloadOptions& options) {
  absl::StatusOr<Array> array = Array::allocate(buffer.type(), buffer.shape());
  if (!array.ok()) return array;
  if (absl::Status status = download_into(session, buffer, array->mutable_bytes(), options); !status.ok())
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
  v1::DeleteSessionRequest request;
  request.set_name(state_->name);
  CallOptions options;
  options.timeout = absl::Seconds(2);
  // Best effort: without an answer the lease's end deletes the session.
  (void)state_->connection->call_and_wait("/cumulus.v1.Sessions/DeleteSession", wire::serialize(request),
                                          options);
}

const std::string& Session::name() const { return state_->name; }
const std::string& Session::device() const { return state_->device; }
const std::string& Session::instance() const { return state_->instance; }
const std::string& Session::endpoint() const { return state_->endpoint; }

absl::Status Session::renew(const CallOptions& options) const {
  v1::GetSessionRequest request;
  request.set_name(state_->name);
  return state_->connection->call_and_wait<v1::Session>("/cumulus.v1.Sessions/GetSession", request, options)
      .status();
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
  return download_into(*state_, buffer, destination, options);
}

absl::StatusOr<Array> Session::download(const Buffer& buffer, const DownloadOptions& options) const {
  return download_array(*state_, buffer, options);
}

std::future<absl::Status> Session::download_async(const Buffer& buffer, std::span<std::byte> destination,
                                                  const DownloadOptions& options) const {
  return std::async(std::launch::async, [state = state_, &buffer, destination, options] {
    return download_into(*state, buffer, destination, options);
  });
}

std::future<absl::StatusOr<Array>> Session::download_async(const Buffer& buffer,
                                                           const DownloadOptions& options) const {
  return std::async(std::launch::async,
                    [state = state_, &buffer, options] { return download_array(*state, buffer, options); });
}

absl::StatusOr<Result> Session::run(const Operation& operation, const RunOptions& options) const {
  return run_async(operation, options).get();
}

std::future<absl::StatusOr<Result>> Session::run_async(const Operation& operation,
                                                       const RunOptions& options) const {
  return run_to_future(*state_->connection, state_, operation, options);
}

void Session::run_async(const Operation& operation, const RunOptions& options,
                        std::function<void(absl::StatusOr<Result>)> done) const {
  run_to_callback(*state_->connection, state_, operation, options, std::move(done));
}

}  // namespace cumulus

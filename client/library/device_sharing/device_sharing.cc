#include "cumulus/device_sharing.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <optional>
#include <string>
#include <utility>

#include "cumulus/v1/shared_memory.pb.h"
#include "library/buffer_state.h"
#include "library/device_sharing/mapping.h"
#include "library/shared_memory/region.h"
#include "library/transfer.h"
#include "proto/steady_time.h"

namespace cumulus {

struct DeviceArray::State {
  ElementType type;
  Shape shape;
  std::int64_t size_bytes;
  // Null where there are no elements. The mapping goes first, and then the server hears of it.
  std::unique_ptr<SharedRegion> region = nullptr;
  std::unique_ptr<DeviceMapping> mapping = nullptr;
  bool writable = false;
};

/// Makes the handles that only the library may make.
class DeviceArrayAccess {
 public:
  using State = DeviceArray::State;
  static DeviceArray make(State state) { return DeviceArray(std::make_unique<State>(std::move(state))); }
  static const State& state(const DeviceArray& array) { return *array.state_; }
};

DeviceArray::DeviceArray(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceArray::DeviceArray(DeviceArray&&) noexcept = default;
DeviceArray& DeviceArray::operator=(DeviceArray&&) noexcept = default;
DeviceArray::~DeviceArray() = default;

ElementType DeviceArray::type() const { return state_->type; }
const Shape& DeviceArray::shape() const { return state_->shape; }
std::int64_t DeviceArray::size_bytes() const { return state_->size_bytes; }
const void* DeviceArray::data() const {
  return state_->mapping != nullptr ? state_->mapping->data() : nullptr;
}
void* DeviceArray::mutable_data() const {
  return state_->writable && state_->mapping != nullptr ? state_->mapping->data() : nullptr;
}

namespace {

absl::Status not_here(std::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("GPU memory cannot be shared: ", std::string(why)));
}

/// The N of a device cudaN.
absl::StatusOr<std::uint32_t> gpu_of(const Lease& lease) {
  std::string_view device = lease.device;
  std::uint32_t number = 0;
  const bool gpu = device.substr(0, 4) == "cuda" && absl::SimpleAtoi(std::string(device.substr(4)), &number);
  if (gpu) return number;
  return not_here(absl::StrCat("the session is on the device ", lease.device,
                               "; one on a GPU has some (SessionOptions::device)"));
}

absl::StatusOr<std::unique_ptr<SharedRegion>> open_region(const Lease& lease, std::size_t bytes) {
  const absl::StatusOr<std::uint32_t> gpu = gpu_of(lease);
  if (!gpu.ok()) return gpu.status();
  const std::string socket = lease.connection->shared_memory().socket();
  if (socket.empty()) {
    return not_here(
        "the connection shares no memory with its server; both have to be on one machine, the target be a "
        "Unix "
        "socket or a loopback address, and neither turn it off (ConnectOptions::shared_memory, "
        "--shared-memory-socket)");
  }
  absl::StatusOr<std::unique_ptr<SharedRegion>> region =
      SharedRegion::open(socket, {.kind = SharedMemoryMessage::kDevice, .slot = *gpu, .bytes = bytes});
  if (region.ok() && (*region)->bytes() < bytes)
    return absl::InternalError("the server shares less GPU memory than was asked for");
  return region;
}

using State = DeviceArrayAccess::State;

/// Gives an array that has elements memory on the lease's GPU, of zeros.
absl::Status give_memory(const Lease& lease, State& array) {
  const auto bytes = static_cast<std::size_t>(array.size_bytes);
  absl::StatusOr<std::unique_ptr<SharedRegion>> region = open_region(lease, bytes);
  if (!region.ok()) return region.status();
  array.region = *std::move(region);
  absl::StatusOr<std::unique_ptr<DeviceMapping>> mapping = DeviceMapping::map(
      array.region->descriptor(), array.region->bytes(),
      array.writable ? DeviceMapping::Access::kReadAndWrite : DeviceMapping::Access::kRead);
  if (!mapping.ok()) return mapping.status();
  array.mapping = *std::move(mapping);
  return absl::OkStatus();
}

absl::StatusOr<DeviceArray> import_under(const Lease& lease, const BufferState& buffer,
                                         const CallOptions& options) {
  State array{.type = buffer.type, .shape = buffer.shape, .size_bytes = buffer.size_bytes};
  if (array.size_bytes == 0) return DeviceArrayAccess::make(std::move(array));
  if (absl::Status given = give_memory(lease, array); !given.ok()) return given;
  v1::ReadSharedRequest request;
  request.set_name(name_of(buffer));
  request.set_region(array.region->id());
  const absl::StatusOr<v1::ReadSharedResponse> read = lease.connection->call_and_wait<v1::ReadSharedResponse>(
      "/cumulus.v1.SharedMemory/ReadShared", request, options, lease.context());
  if (!read.ok()) return read.status();
  return DeviceArrayAccess::make(std::move(array));
}

}  // namespace

absl::StatusOr<DeviceArray> import_buffer(const Buffer& buffer, const CallOptions& options) {
  if (absl::Status context = check_cuda_context(); !context.ok()) return context;
  const std::shared_ptr<BufferState>& state = BufferAccess::state(buffer);
  SessionState& session = *state->session;
  const absl::Time deadline = session.server()->deadline(options);
  Outage outage(deadline, session.server()->max_outage(), options.cancellation);
  CallOptions rest = options;
  while (true) {
    const std::shared_ptr<const Lease> lease = session.lease();
    absl::Status status = restore(session, *lease, {state}, outage);
    if (status.ok()) {
      rest.timeout = deadline - steady_now();
      absl::StatusOr<DeviceArray> array = import_under(*lease, *state, rest);
      if (array.ok()) return array;
      status = array.status();
    }
    if (absl::Status again = session.go_on_after(status, *lease, outage); !again.ok()) return again;
  }
}

absl::StatusOr<DeviceArray> allocate_device_array(const Session& session, ElementType type, Shape shape) {
  const absl::StatusOr<std::int64_t> count = element_count(shape);
  if (!count.ok()) return count.status();
  State array{.type = type, .shape = std::move(shape), .size_bytes = 0, .writable = true};
  const auto width = static_cast<std::int64_t>(element_bytes(type));
  if (__builtin_mul_overflow(*count, width, &array.size_bytes))
    return absl::InvalidArgumentError("allocate_device_array: the shape has more bytes than any memory");
  if (absl::Status context = check_cuda_context(); !context.ok()) return context;
  if (array.size_bytes > 0) {
    const std::shared_ptr<const Lease> lease = SessionAccess::state(session)->lease();
    if (absl::Status given = give_memory(*lease, array); !given.ok()) return given;
  }
  return DeviceArrayAccess::make(std::move(array));
}

absl::StatusOr<Buffer> upload_device_array(const Session& session, const DeviceArray& array,
                                           CUstream_st* stream, const UploadOptions& options) {
  const State& source = DeviceArrayAccess::state(array);
  if (source.region == nullptr) return session.upload(ArrayView(source.type, {}, source.shape), options);
  if (absl::Status written = wait_for_stream(stream); !written.ok()) return written;
  const std::shared_ptr<SessionState>& state = SessionAccess::state(session);
  const std::shared_ptr<const Lease> lease = state->lease();
  v1::WriteSharedRequest request;
  *request.mutable_spec() = write_spec(lease->name, source.type, source.shape, options);
  request.set_region(source.region->id());
  const absl::StatusOr<v1::Buffer> buffer = lease->connection->call_and_wait<v1::Buffer>(
      "/cumulus.v1.SharedMemory/WriteShared", request, options.call, lease->context());
  if (!buffer.ok()) return buffer.status();
  return BufferAccess::make(state, *lease, *buffer);
}

}  // namespace cumulus

#include "library/c/channel.h"

#include <absl/time/time.h>

#include <string>
#include <utility>

#include "cumulus/array.h"
#include "cumulus/v1/server.pb.h"
#include "library/shared_memory/array_upload.h"
#include "library/shared_memory/arrays.h"

// NOLINTNEXTLINE(readability-identifier-naming): C's name
struct cumulus_memory {
  cumulus::Array array;
};

namespace cumulus::c {
namespace {

bool positive(double seconds) { return std::isfinite(seconds) && seconds > 0; }

Outcome open_channel(const cumulus_channel_options& options, cumulus_channel** channel) {
  if (Outcome checked = check_size(options, "options", "CUMULUS_CHANNEL_OPTIONS"); !checked.ok())
    return checked;
  if (!positive(options.connect_timeout_seconds))
    return refuse("options.connect_timeout_seconds", "has to be finite and more than 0");
  if (!positive(options.dead_after_seconds))
    return refuse("options.dead_after_seconds", "has to be finite and more than 0");
  if (text_of(options.address).empty())
    return refuse("options.address", "names no server; give HOST:PORT or unix:PATH");
  const std::string socket = text_of(options.shared_memory_socket);
  ConnectOptions connect;
  connect.connect_timeout = absl::Seconds(options.connect_timeout_seconds);
  connect.dead_after = absl::Seconds(options.dead_after_seconds);
  connect.credentials = Credentials{text_of(options.tls_ca), text_of(options.tls_cert),
                                    text_of(options.tls_key), text_of(options.token_file)};
  connect.shared_memory = !socket.empty();
  absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::open(options.address, connect);
  if (!connection.ok()) return connection.status();
  v1::Capabilities capabilities;
  capabilities.set_shared_memory_socket(socket);
  capabilities.set_joined_uploads(options.joined_uploads != 0);
  (*connection)->take_capabilities(capabilities);
  *channel = new cumulus_channel{*std::move(connection)};
  return absl::OkStatus();
}

Outcome allocate(const cumulus_channel& channel, std::size_t size, cumulus_memory** memory, void** data) {
  SharedMemory& shared = channel.connection->shared_memory();
  absl::StatusOr<Array> array =
      allocate_shared_array(shared, ElementType::kUint8, {static_cast<std::int64_t>(size)});
  if (!array.ok()) return array.status();
  if (shared.arrays()->find(array->bytes()) == nullptr) {
    return absl::FailedPreconditionError(
        "the server shares no memory of this size with this channel; take memory of your own");
  }
  *memory = new cumulus_memory{*std::move(array)};
  *data = (*memory)->array.mutable_bytes().data();
  return absl::OkStatus();
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_channel_open(const cumulus_channel_options* options, cumulus_channel** channel,
                                  cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"options", options}, {"channel", channel}});
    if (channel != nullptr) *channel = nullptr;
    return given.ok() ? cumulus::c::open_channel(*options, channel) : given;
  });
}

void cumulus_channel_release(cumulus_channel* channel) { delete channel; }

cumulus_code cumulus_channel_allocate(cumulus_channel* channel, size_t size, cumulus_memory** memory,
                                      void** data, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"channel", channel}, {"memory", memory}, {"data", data}});
    if (memory != nullptr) *memory = nullptr;
    if (data != nullptr) *data = nullptr;
    return given.ok() ? cumulus::c::allocate(*channel, size, memory, data) : given;
  });
}

void cumulus_memory_release(cumulus_memory* memory) { delete memory; }

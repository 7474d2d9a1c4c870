#include <absl/time/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "library/c/channel.h"
#include "library/shared_memory/array_upload.h"
#include "library/transfer.h"

// NOLINTBEGIN(readability-identifier-naming): C's names
struct cumulus_transfer {
  /// What a transfer and its handle share.
  struct State {
    explicit State(std::shared_ptr<cumulus::Connection> over) : connection(std::move(over)) {}

    void end(absl::Status with);
    void end(const absl::StatusOr<cumulus::Uploaded>& with);
    /// Takes the answer to `write` if it comes that soon, for which nobody looks but who waits for the
    /// transfer.
    void look_for_answer(absl::Duration limit);

    const std::shared_ptr<cumulus::Connection> connection;
    const cumulus::Cancellation cancellation = {};
    std::atomic<std::size_t> done = 0;

    std::atomic<bool> to_be_looked_for = false;  // the answer to `write`
    std::timed_mutex looking = {};               // of what follows
    std::unique_ptr<cumulus::SharedWrite> write = {};
    std::function<void()> write_another_way = {};

    std::mutex mutex = {};  // of what follows
    std::condition_variable changed = {};
    bool ended = false;
    absl::Status result = {};
    std::string buffer = {};
    std::uint32_t checksum = 0;
    std::thread thread = {};  // of a transfer that has one; it is joined with the handle's end
  };

  explicit cumulus_transfer(std::shared_ptr<State> shared) : state(std::move(shared)) {}

  const std::shared_ptr<State> state;
};

void cumulus_transfer::State::end(absl::Status with) {
  const std::lock_guard lock(mutex);
  result = std::move(with);
  ended = true;
  changed.notify_all();
}

void cumulus_transfer::State::end(const absl::StatusOr<cumulus::Uploaded>& with) {
  if (!with.ok()) return end(with.status());
  {
    const std::lock_guard lock(mutex);
    buffer = with->buffer.name();
    checksum = with->checksum;
  }
  end(absl::OkStatus());
}

void cumulus_transfer::State::look_for_answer(absl::Duration limit) {
  const std::unique_lock own(looking, absl::ToChronoMicroseconds(limit));
  if (!own.owns_lock() || !to_be_looked_for || !write->wait_for(limit)) return;
  const std::optional<absl::StatusOr<cumulus::Uploaded>> uploaded = write->finish();
  write.reset();
  to_be_looked_for = false;
  if (!uploaded.has_value()) return write_another_way();
  if (uploaded->ok()) done = static_cast<std::size_t>((*uploaded)->buffer.size_bytes());
  end(*uploaded);
}
// NOLINTEND(readability-identifier-naming)

namespace cumulus::c {
namespace {

/// What both directions are told of a transfer.
struct Terms {
  CallContext context = {};
  CallOptions call = {};
};

Outcome read_terms(const cumulus_session_name& session, const cumulus_transfer_options& options,
                   Terms& terms) {
  if (Outcome checked = check_size(options, "options", "CUMULUS_TRANSFER_OPTIONS"); !checked.ok())
    return checked;
  if (Outcome named = require({{"session.name", session.name}}); !named.ok()) return named;
  if (Outcome read = check_timeout(options.timeout_seconds, "options.timeout_seconds"); !read.ok())
    return read;
  if (options.ttl_nanoseconds < 0) return refuse("options.ttl_nanoseconds", "has to be at least 0");
  terms.context = context_of(session);
  terms.call.timeout = absl::Seconds(options.timeout_seconds);
  terms.call.request_id = text_of(options.request_id);
  return absl::OkStatus();
}

using State = cumulus_transfer::State;

/// Runs `move`, whose end is the transfer's, on a thread of its own.
void start(const std::shared_ptr<State>& state, std::function<void(State&)> move) {
  const auto run = [state, move = std::move(move)] {
    try {
      move(*state);
    } catch (const std::bad_alloc&) {
      state->end(absl::ResourceExhaustedError("this program has no memory left for the transfer"));
    }
  };
  try {
    const std::lock_guard lock(state->mutex);
    state->thread = std::thread(run);
  } catch (const std::system_error& error) {
    state->end(absl::ResourceExhaustedError(
        absl::StrCat("this program can start no thread for the transfer: ", error.what())));
  }
}

/// Of the transfer's thread, whose handle is released after its end.
TransferProgress progress_of(State& state) {
  return [&state](std::int64_t done, std::int64_t) { state.done = static_cast<std::size_t>(done); };
}

/// What is read of an upload before it begins.
struct Upload {
  CallContext context;
  v1::WriteSpec spec;
  std::span<const std::byte> bytes;
  UploadOptions options;
  Checksum checksum;

  void run(State& state) const {
    state.end(write_buffer(*state.connection, context, spec, bytes, options, checksum));
  }
};

/// An array that lies in shared memory is one call, which needs no thread of its own. False of others.
bool start_shared(const std::shared_ptr<State>& state, const std::shared_ptr<const Upload>& upload) {
  if (upload->checksum == Checksum::kWanted) return false;  // which takes its time
  state->write =
      SharedWrite::start(*state->connection, upload->context, upload->spec, upload->bytes, upload->options);
  state->write_another_way = [weak = std::weak_ptr(state), upload] {
    start(weak.lock(), [upload](State& own) { upload->run(own); });
  };
  state->to_be_looked_for = state->write != nullptr;
  return state->to_be_looked_for;
}

Outcome start_upload(const cumulus_channel& channel, const cumulus_session_name& session,
                     const cumulus_array& array, const cumulus_transfer_options& options,
                     cumulus_transfer** transfer) {
  if (Outcome checked = check_array(array); !checked.ok()) return checked;
  Terms terms;
  if (Outcome read = read_terms(session, options, terms); !read.ok()) return read;
  const auto state = std::make_shared<State>(channel.connection);
  auto made = std::make_unique<cumulus_transfer>(state);
  terms.call.cancellation = state->cancellation;
  UploadOptions given;
  given.call = terms.call;
  given.progress = progress_of(*state);
  if (options.ttl_nanoseconds > 0) given.ttl = absl::Nanoseconds(options.ttl_nanoseconds);
  given.evictable = options.evictable != 0;
  const ArrayView view = view_of(array);
  const auto upload = std::make_shared<const Upload>(
      Upload{terms.context, write_spec(session.name, view.type(), view.shape(), given), view.bytes(), given,
             options.checksum != 0 ? Checksum::kWanted : Checksum::kUnwanted});
  if (!start_shared(state, upload)) start(state, [upload](State& own) { upload->run(own); });
  *transfer = made.release();
  return absl::OkStatus();
}

Outcome start_download(const cumulus_channel& channel, const cumulus_session_name& session,
                       const cumulus_destination& destination, const cumulus_transfer_options& options,
                       cumulus_transfer** transfer) {
  if (Outcome given =
          require({{"destination.buffer", destination.buffer}, {"destination.data", destination.data}});
      !given.ok())
    return given;
  Terms terms;
  if (Outcome read = read_terms(session, options, terms); !read.ok()) return read;
  const auto state = std::make_shared<State>(channel.connection);
  auto made = std::make_unique<cumulus_transfer>(state);
  DownloadOptions download;
  terms.call.cancellation = state->cancellation;
  download.call = terms.call;
  download.progress = progress_of(*state);
  const std::span bytes(static_cast<std::byte*>(destination.data), destination.size);
  start(state, [context = terms.context, download, name = std::string(destination.buffer), bytes](
                   State& own) { own.end(read_buffer(*own.connection, context, name, bytes, download)); });
  *transfer = made.release();
  return absl::OkStatus();
}

/// The transfer, once it has ended.
std::unique_lock<std::mutex> ended(State& state) {
  while (state.to_be_looked_for) state.look_for_answer(absl::Hours(1));
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.ended; });
  return lock;
}

}  // namespace
}  // namespace cumulus::c

cumulus_code cumulus_channel_start_upload(cumulus_channel* channel, const cumulus_session_name* session,
                                          const cumulus_array* array, const cumulus_transfer_options* options,
                                          cumulus_transfer** transfer, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"channel", channel},
                                      {"session", session},
                                      {"array", array},
                                      {"options", options},
                                      {"transfer", transfer}});
    if (transfer != nullptr) *transfer = nullptr;
    return given.ok() ? cumulus::c::start_upload(*channel, *session, *array, *options, transfer) : given;
  });
}

cumulus_code cumulus_channel_upload(cumulus_channel* channel, const cumulus_session_name* session,
                                    const cumulus_array* array, const cumulus_transfer_options* options,
                                    cumulus_uploaded* uploaded, cumulus_status* status) {
  const cumulus_code given = cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    return cumulus::c::require({{"uploaded", uploaded}});
  });
  if (given != CUMULUS_OK) return given;
  uploaded->buffer = nullptr;
  const cumulus_code begun =
      cumulus_channel_start_upload(channel, session, array, options, &uploaded->transfer, status);
  if (begun != CUMULUS_OK || cumulus_transfer_wait(uploaded->transfer, uploaded->seconds) == 0) return begun;
  const cumulus_code ended = cumulus_transfer_result(uploaded->transfer, status);
  if (ended == CUMULUS_OK) uploaded->buffer = cumulus_transfer_buffer(uploaded->transfer);
  return ended;
}

cumulus_code cumulus_channel_start_download(cumulus_channel* channel, const cumulus_session_name* session,
                                            const cumulus_destination* destination,
                                            const cumulus_transfer_options* options,
                                            cumulus_transfer** transfer, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"channel", channel},
                                      {"session", session},
                                      {"destination", destination},
                                      {"options", options},
                                      {"transfer", transfer}});
    if (transfer != nullptr) *transfer = nullptr;
    return given.ok() ? cumulus::c::start_download(*channel, *session, *destination, *options, transfer)
                      : given;
  });
}

int32_t cumulus_transfer_wait(cumulus_transfer* transfer, double seconds) {
  cumulus_transfer::State& state = *transfer->state;
  const absl::Duration limit = absl::Seconds(std::clamp(seconds, 0.0, 1e6));
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(limit);
  if (state.to_be_looked_for) state.look_for_answer(limit);
  std::unique_lock lock(state.mutex);
  return state.changed.wait_until(lock, until, [&] { return state.ended; }) ? 1 : 0;
}

size_t cumulus_transfer_done(const cumulus_transfer* transfer) { return transfer->state->done; }

void cumulus_transfer_cancel(cumulus_transfer* transfer) { transfer->state->cancellation.cancel(); }

cumulus_code cumulus_transfer_result(cumulus_transfer* transfer, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"transfer", transfer}});
    if (!given.ok()) return given;
    const auto lock = cumulus::c::ended(*transfer->state);
    return transfer->state->result;
  });
}

const char* cumulus_transfer_buffer(cumulus_transfer* transfer) {
  const auto lock = cumulus::c::ended(*transfer->state);
  return transfer->state->buffer.c_str();
}

uint32_t cumulus_transfer_checksum(cumulus_transfer* transfer) {
  const auto lock = cumulus::c::ended(*transfer->state);
  return transfer->state->checksum;
}

void cumulus_transfer_release(cumulus_transfer* transfer) {
  if (transfer == nullptr) return;
  transfer->state->cancellation.cancel();
  cumulus::c::ended(*transfer->state).unlock();
  if (transfer->state->thread.joinable()) transfer->state->thread.join();
  delete transfer;
}

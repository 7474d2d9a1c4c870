#include <absl/time/time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "library/c/channel.h"
#include "library/transfer.h"

// NOLINTBEGIN(readability-identifier-naming): C's names
struct cumulus_transfer {
  explicit cumulus_transfer(std::shared_ptr<cumulus::Connection> over) : connection(std::move(over)) {}

  const std::shared_ptr<cumulus::Connection> connection;
  const cumulus::Cancellation cancellation = {};
  std::atomic<std::size_t> done = 0;

  std::mutex mutex = {};  // of what follows
  std::condition_variable changed = {};
  bool ended = false;
  absl::Status result = {};
  std::string buffer = {};
  std::uint32_t checksum = 0;
  std::thread thread = {};  // the last: what it uses is there before it
};
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

/// Runs `move` on the transfer's thread.
void start(cumulus_transfer& transfer, std::function<absl::Status(cumulus_transfer&)> move) {
  transfer.thread = std::thread([&transfer, move = std::move(move)] {
    absl::Status result;
    try {
      result = move(transfer);
    } catch (const std::bad_alloc&) {
      result = absl::ResourceExhaustedError("this program has no memory left for the transfer");
    }
    const std::lock_guard lock(transfer.mutex);
    transfer.result = std::move(result);
    transfer.ended = true;
    transfer.changed.notify_all();
  });
}

TransferProgress progress_of(cumulus_transfer& transfer) {
  return [&transfer](std::int64_t done, std::int64_t) { transfer.done = static_cast<std::size_t>(done); };
}

Outcome start_upload(const cumulus_channel& channel, const cumulus_session_name& session,
                     const cumulus_array& array, const cumulus_transfer_options& options,
                     cumulus_transfer** transfer) {
  if (Outcome checked = check_array(array); !checked.ok()) return checked;
  Terms terms;
  if (Outcome read = read_terms(session, options, terms); !read.ok()) return read;
  auto made = std::make_unique<cumulus_transfer>(channel.connection);
  UploadOptions upload;
  terms.call.cancellation = made->cancellation;
  upload.call = terms.call;
  upload.progress = progress_of(*made);
  if (options.ttl_nanoseconds > 0) upload.ttl = absl::Nanoseconds(options.ttl_nanoseconds);
  upload.evictable = options.evictable != 0;
  const ArrayView view = view_of(array);
  const v1::WriteSpec spec = write_spec(session.name, view.type(), view.shape(), upload);
  const Checksum checksum = options.checksum != 0 ? Checksum::kWanted : Checksum::kUnwanted;
  start(*made, [context = terms.context, upload, spec, bytes = view.bytes(),
                checksum](cumulus_transfer& own) {
    absl::StatusOr<Uploaded> uploaded = write_buffer(*own.connection, context, spec, bytes, upload, checksum);
    if (!uploaded.ok()) return uploaded.status();
    const std::lock_guard lock(own.mutex);
    own.buffer = uploaded->buffer.name();
    own.checksum = checksum == Checksum::kWanted ? uploaded->checksum : 0;
    return absl::OkStatus();
  });
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
  auto made = std::make_unique<cumulus_transfer>(channel.connection);
  DownloadOptions download;
  terms.call.cancellation = made->cancellation;
  download.call = terms.call;
  download.progress = progress_of(*made);
  const std::span bytes(static_cast<std::byte*>(destination.data), destination.size);
  start(*made,
        [context = terms.context, download, name = std::string(destination.buffer), bytes](
            cumulus_transfer& own) { return read_buffer(*own.connection, context, name, bytes, download); });
  *transfer = made.release();
  return absl::OkStatus();
}

/// The transfer, once it has ended.
std::unique_lock<std::mutex> ended(cumulus_transfer& transfer) {
  std::unique_lock lock(transfer.mutex);
  transfer.changed.wait(lock, [&] { return transfer.ended; });
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
  std::unique_lock lock(transfer->mutex);
  return transfer->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                    [&] { return transfer->ended; })
             ? 1
             : 0;
}

size_t cumulus_transfer_done(const cumulus_transfer* transfer) { return transfer->done; }

void cumulus_transfer_cancel(cumulus_transfer* transfer) { transfer->cancellation.cancel(); }

cumulus_code cumulus_transfer_result(cumulus_transfer* transfer, cumulus_status* status) {
  return cumulus::c::guarded(status, [&]() -> cumulus::c::Outcome {
    auto given = cumulus::c::require({{"transfer", transfer}});
    if (!given.ok()) return given;
    const auto lock = cumulus::c::ended(*transfer);
    return transfer->result;
  });
}

const char* cumulus_transfer_buffer(cumulus_transfer* transfer) {
  const auto lock = cumulus::c::ended(*transfer);
  return transfer->buffer.c_str();
}

uint32_t cumulus_transfer_checksum(cumulus_transfer* transfer) {
  const auto lock = cumulus::c::ended(*transfer);
  return transfer->checksum;
}

void cumulus_transfer_release(cumulus_transfer* transfer) {
  if (transfer == nullptr) return;
  transfer->cancellation.cancel();
  transfer->thread.join();
  delete transfer;
}

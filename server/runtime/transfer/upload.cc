#include "server/runtime/transfer/upload.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/checksums.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/exceptions.h"
#include "server/runtime/fault_points.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/runtime/wire.h"

namespace cumulus::server {

Upload::Upload(Runtime& runtime, FindRing find_ring, Options options, grpc::ByteBuffer* response)
    : Transfer(std::move(options)),
      runtime_(runtime),
      find_ring_(std::move(find_ring)),
      response_(response) {}

void Upload::begin() {
  self_ = shared_from_this();
  if (const absl::Status share = take_share(); !share.ok()) {
    end(share);
    return;
  }
  read_next();
}

void Upload::OnReadDone(bool ok) {
  client_moved();
  if (!ok) {
    end(bad_request("UPLOAD_INCOMPLETE",
                    concat("the stream ended after ", received_bytes_, " of ", total_bytes_,
                           " bytes, without finish_write; nothing is kept: upload again")));
    return;
  }
  if (const absl::Status status = take_message(); !status.ok()) {
    end(status);
  } else if (ring_ == nullptr || chunk_.data_bytes == 0) {
    place_directly();
  } else if (!hold_back()) {
    acquire_slot();
  }
}

bool Upload::hold_back() {
  const std::lock_guard lock(copies_mutex_);
  held_back_ = copies_in_flight_ >= kMaxSlots;
  return held_back_;
}

void Upload::acquire_slot() {
  ring_->acquire(StagingRing::Use::kUpload, [self = shared_from_this(), this](StagingRing::Slot slot) {
    place_staged(std::move(slot));
  });
}

void Upload::OnCancel() { end(absl::CancelledError("the client cancelled the upload")); }

void Upload::OnDone() { self_.reset(); }

void Upload::read_next() {
  wait_for_client([this] {
    if (!fault_due(FaultPoint::STALLED_READER)) StartRead(&message_);
  });
}

absl::Status Upload::take_message() {
  chunk_ = {};
  if (const absl::Status status = parse_upload_chunk(message_, chunk_); !status.ok()) return status;
  const bool first = session_ == nullptr;
  if (first && !chunk_.spec)
    return bad_field("spec", "is missing; the first message of an upload carries it");
  if (!first && chunk_.spec) return bad_field("spec", "comes again; only the first message carries it");
  if (first) {
    if (const absl::Status status = take_spec(*chunk_.spec); !status.ok()) return status;
  } else if (const auto session = runtime_.sessions.find_session(session_->name, principal());
             !session.ok()) {
    return session.status();  // asked for each chunk, so that a long upload keeps its session
  } else if (!device_->healthy()) {
    return failed_device(*device_);
  }
  return check_chunk();
}

absl::Status Upload::take_spec(const v1::WriteSpec& spec) {
  if (const absl::Status status = check_request_id(spec.request_id(), "spec.request_id"); !status.ok())
    return status;
  set_request_id(spec.request_id());
  if (spec.session().empty())
    return bad_field("spec.session", "is empty; name the session that will own the buffer");
  absl::StatusOr<ArrayShape> shape = parse_array_spec(spec.spec(), "spec.spec");
  if (!shape.ok()) return shape.status();
  const auto& limits = runtime_.configuration.limits;
  const absl::StatusOr<absl::Duration> ttl =
      checked_ttl(spec.has_ttl(), spec.ttl(), "spec.ttl", absl::InfiniteDuration(), limits.max_ttl);
  if (!ttl.ok()) return ttl.status();
  total_bytes_ = shape->bytes();
  if (total_bytes_ > limits.max_buffer_bytes) {
    return exhausted("limits:max_buffer_bytes",
                     concat("the array ", shape->text(), " has ", total_bytes_, " bytes; the server allows ",
                            limits.max_buffer_bytes, " (max_buffer_bytes)"));
  }
  absl::StatusOr<SessionHandle> session = runtime_.sessions.find_session(spec.session(), principal());
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  const std::size_t budget = session_->slot->device->budget()->limit_bytes();
  if (const absl::Status announced = announce(total_bytes_, budget / 2); !announced.ok()) return announced;
  buffer_.shape = *std::move(shape);
  buffer_.ttl = *ttl;
  buffer_.evictable = spec.evictable();
  return allocate();
}

absl::Status Upload::allocate() {
  device_ = session_->slot->device.get();
  if (!device_->healthy()) return failed_device(*device_);
  absl::StatusOr<Admission> admission =
      runtime_.sessions.admit_upload(*device_, *session_, align_block(total_bytes_));
  if (!admission.ok()) return admission.status();
  buffer_.admission = *std::move(admission);
  try {
    buffer_.memory = device_->allocate(total_bytes_);
    buffer_.head.reserve(std::min(total_bytes_, kHeadBytes));
  } catch (...) {
    return translate_exception(*device_, absl::InfiniteFuture());
  }
  ring_ = find_ring_(*device_);
  return absl::OkStatus();
}

absl::Status Upload::check_chunk() const {
  if (chunk_.write_offset < 0 || static_cast<std::size_t>(chunk_.write_offset) != received_bytes_) {
    return bad_field("write_offset", concat("is ", chunk_.write_offset, "; ", received_bytes_,
                                            " bytes came before, and chunks come in order"));
  }
  if (const absl::Status status = check_data(); !status.ok()) return status;
  const std::size_t end = received_bytes_ + chunk_.data_bytes;
  if (end > total_bytes_) {
    return bad_request("SIZE_MISMATCH", concat("the chunk ends at byte ", end, "; the array ",
                                               buffer_.shape.text(), " has ", total_bytes_, " bytes"));
  }
  if (chunk_.finish_write && end < total_bytes_) {
    return bad_request("SIZE_MISMATCH", concat("finish_write came after ", end, " bytes; the array ",
                                               buffer_.shape.text(), " has ", total_bytes_));
  }
  return absl::OkStatus();
}

absl::Status Upload::check_data() const {
  if (chunk_.data_bytes > kMaxChunkBytes) {
    return bad_field("data", concat("has ", chunk_.data_bytes, " bytes; at most ", kMaxChunkBytes,
                                    " (Capabilities.max_chunk_bytes) go into one message"));
  }
  if (chunk_.data_bytes > 0 && !chunk_.crc32c) {
    return bad_field("crc32c", "is missing; where there is data it is required");
  }
  if (chunk_.data_bytes == 0 && !chunk_.spec && !chunk_.finish_write) {
    return bad_field("data", "is empty; only the first message and the last may have none");
  }
  return absl::OkStatus();
}

void Upload::place_directly() {
  std::byte* target = buffer_.memory.host_data();
  const absl::Status status = copy_data(target != nullptr ? target + received_bytes_ : nullptr);
  if (!status.ok()) {
    end(status);
    return;
  }
  chunk_placed();
}

void Upload::place_staged(StagingRing::Slot slot) {
  if (ended()) return;
  if (const absl::Status status = copy_data(slot.get()); !status.ok()) {
    end(status);
    return;
  }
  {
    const std::lock_guard lock(copies_mutex_);
    ++copies_in_flight_;
  }
  device_->copy_in({slot.get(), chunk_.data_bytes}, buffer_.memory, received_bytes_,
                   [self = shared_from_this(), this, slot](const absl::Status& status) mutable {
                     slot.reset();  // now, rather than whenever the device drops this function
                     copied(status);
                   });
  chunk_placed();
}

absl::Status Upload::copy_data(std::byte* target) {
  std::uint32_t crc = 0;
  for (const std::span<const std::byte> piece : chunk_.data) {
    // Piece by piece, so that the second pass over it finds it in the cache.
    crc = crc32c(piece, crc);
    std::memcpy(target, piece.data(), piece.size());
    target += piece.size();
    const std::size_t wanted = std::min(piece.size(), kHeadBytes - std::min(kHeadBytes, buffer_.head.size()));
    buffer_.head.insert(buffer_.head.end(), piece.begin(),
                        piece.begin() + static_cast<std::ptrdiff_t>(wanted));
  }
  if (chunk_.crc32c && *chunk_.crc32c != crc) {
    return bad_request(
        "CHECKSUM_MISMATCH",
        absl::StrFormat("the chunk at byte %u has the crc32c %08x and says %08x: it was damaged on its "
                        "way; upload again",
                        received_bytes_, crc, *chunk_.crc32c));
  }
  return absl::OkStatus();
}

void Upload::chunk_placed() {
  received_bytes_ += chunk_.data_bytes;
  count_bytes(chunk_.data_bytes);
  const bool last = chunk_.finish_write;
  chunk_ = {};
  message_.Clear();
  if (!last) {
    read_next();
    return;
  }
  {
    const std::lock_guard lock(copies_mutex_);
    all_received_ = true;
  }
  publish_if_complete();
}

void Upload::copied(const absl::Status& status) {
  bool go_on = false;
  {
    const std::lock_guard lock(copies_mutex_);
    --copies_in_flight_;
    go_on = std::exchange(held_back_, false);
  }
  if (!status.ok()) {
    end(status);
  } else if (go_on) {
    acquire_slot();
  } else {
    publish_if_complete();
  }
}

void Upload::publish_if_complete() {
  {
    const std::lock_guard lock(copies_mutex_);
    if (!all_received_ || copies_in_flight_ > 0 || published_) return;
    published_ = true;
  }
  if (!ended()) publish();
}

void Upload::publish() {
  const absl::StatusOr<BufferHandle> buffer = runtime_.sessions.add_buffer(*session_, std::move(buffer_));
  if (!buffer.ok()) {
    end(buffer.status());
    return;
  }
  v1::Buffer message;
  write_buffer(**buffer, message);
  use_call([&] {
    bool own = false;
    grpc::SerializationTraits<v1::Buffer>::Serialize(message, response_, &own);
  });
  // Who has cancelled meanwhile does not learn the buffer's name.
  if (!end(absl::OkStatus())) (void)runtime_.sessions.delete_buffer((*buffer)->name, principal());
}

}  // namespace cumulus::server

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

Upload::Upload(Runtime& runtime, JoinedUploads& joined, FindRing find_ring, Options options,
               grpc::ByteBuffer* response)
    : Transfer(std::move(options)),
      runtime_(runtime),
      joined_(joined),
      find_ring_(std::move(find_ring)),
      response_(response) {}

// Not when the call ends: copies may still be on their way to the part's memory.
Upload::~Upload() {
  if (claimed_) target_->release(part_);
}

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
                    concat("the stream ended after ", next_ - part_.begin, " of ", part_.end - part_.begin,
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
  const bool first = target_ == nullptr;
  if (first && !chunk_.spec)
    return bad_field("spec", "is missing; the first message of an upload carries it");
  if (!first && chunk_.spec) return bad_field("spec", "comes again; only the first message carries it");
  if (first) {
    if (const absl::Status status = take_spec(*chunk_.spec); !status.ok()) return status;
  } else if (const auto session = runtime_.sessions.find_session(target_->session().name, principal());
             !session.ok()) {
    return session.status();  // asked for each chunk, so that a long upload keeps its session
  } else if (!target_->device().healthy()) {
    return failed_device(target_->device());
  }
  return check_chunk();
}

absl::Status Upload::take_spec(const v1::WriteSpec& spec) {
  if (const absl::Status status = check_request_id(spec.request_id(), "spec.request_id"); !status.ok())
    return status;
  if (const absl::Status status = check_request_id(spec.upload(), "spec.upload"); !status.ok()) return status;
  set_request_id(spec.request_id());
  if (spec.session().empty())
    return bad_field("spec.session", "is empty; name the session that will own the buffer");
  const absl::StatusOr<UploadTarget::Description> description =
      UploadTarget::read_description(runtime_, spec);
  if (!description.ok()) return description.status();
  const absl::StatusOr<SessionHandle> session = runtime_.sessions.find_session(spec.session(), principal());
  if (!session.ok()) return session.status();
  return join(spec, *session, *description);
}

absl::Status Upload::join(const v1::WriteSpec& spec, const SessionHandle& session,
                          const UploadTarget::Description& description) {
  const auto make = [&] { return std::make_shared<UploadTarget>(runtime_, session, description); };
  target_ = spec.upload().empty() ? make() : joined_.find_or_make(session->name, spec.upload(), make);
  watched_ = target_.get();
  if (target_->description() != description) {
    return bad_field("spec", concat("says ", description.shape.text(), "; the upload ", spec.upload(),
                                    " began as ", target_->description().shape.text(),
                                    ", and its streams say the same spec, ttl and evictable"));
  }
  const absl::StatusOr<Part> part = read_part(spec);
  if (!part.ok()) return part.status();
  part_ = *part;
  next_ = part_.begin;
  const std::size_t budget = target_->device().budget()->limit_bytes();
  const absl::Status allocated =
      target_->allocate([&](std::size_t bytes) { return announce(bytes, budget / 2); });
  if (!allocated.ok()) return allocated;
  ring_ = find_ring_(target_->device());
  const absl::Status claimed = target_->claim(part_, std::static_pointer_cast<Upload>(shared_from_this()));
  claimed_ = claimed.ok();
  return claimed;
}

absl::StatusOr<Part> Upload::read_part(const v1::WriteSpec& spec) const {
  const std::size_t total = target_->total_bytes();
  if (spec.upload().empty()) {
    if (spec.part_bytes() == 0) return Part{0, total};
    return bad_field("spec.part_bytes",
                     concat("is ", spec.part_bytes(), "; without spec.upload, a stream brings the array: 0"));
  }
  if (chunk_.write_offset < 0 || static_cast<std::size_t>(chunk_.write_offset) > total) {
    return bad_field("write_offset", concat("is ", chunk_.write_offset, "; the array ",
                                            target_->description().shape.text(), " has ", total, " bytes"));
  }
  const auto begin = static_cast<std::size_t>(chunk_.write_offset);
  const std::size_t least = total > 0 ? 1 : 0;
  if (spec.part_bytes() < static_cast<std::int64_t>(least) ||
      static_cast<std::size_t>(spec.part_bytes()) > total - begin) {
    return bad_field(
        "spec.part_bytes",
        concat("is ", spec.part_bytes(), "; of the array ", target_->description().shape.text(), ", ",
               total - begin, " bytes lie behind write_offset: ", least, " to that is right"));
  }
  return Part{begin, begin + static_cast<std::size_t>(spec.part_bytes())};
}

absl::Status Upload::check_chunk() const {
  if (chunk_.write_offset < 0 || static_cast<std::size_t>(chunk_.write_offset) != next_) {
    return bad_field("write_offset", concat("is ", chunk_.write_offset, "; ", next_,
                                            " bytes came before, and chunks come in order"));
  }
  if (const absl::Status status = check_data(); !status.ok()) return status;
  const std::size_t end = next_ + chunk_.data_bytes;
  if (end > part_.end) {
    return bad_request("SIZE_MISMATCH",
                       concat("the chunk ends at byte ", end, " of the array ",
                              target_->description().shape.text(), "; this stream's end at ", part_.end));
  }
  if (chunk_.finish_write && end < part_.end) {
    return bad_request("SIZE_MISMATCH", concat("finish_write came after ", end - part_.begin,
                                               " bytes; of the array ", target_->description().shape.text(),
                                               " this stream brings ", part_.end - part_.begin));
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
  std::byte* target = target_->memory().host_data();
  const absl::Status status = copy_data(target != nullptr ? target + next_ : nullptr);
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
  target_->device().copy_in({slot.get(), chunk_.data_bytes}, target_->memory(), next_,
                            [self = shared_from_this(), this, slot](const absl::Status& status) mutable {
                              slot.reset();  // now, rather than whenever the device drops this function
                              copied(status);
                            });
  chunk_placed();
}

absl::Status Upload::copy_data(std::byte* target) {
  std::uint32_t crc = 0;
  std::size_t offset = next_;
  for (const std::span<const std::byte> piece : chunk_.data) {
    // Piece by piece, so that the second pass over it finds it in the cache.
    crc = crc32c(piece, crc);
    std::memcpy(target, piece.data(), piece.size());
    target += piece.size();
    target_->keep_head(offset, piece);
    offset += piece.size();
  }
  if (chunk_.crc32c && *chunk_.crc32c != crc) {
    return bad_request(
        "CHECKSUM_MISMATCH",
        absl::StrFormat("the chunk at byte %u has the crc32c %08x and says %08x: it was damaged on its "
                        "way; upload again",
                        next_, crc, *chunk_.crc32c));
  }
  return absl::OkStatus();
}

void Upload::chunk_placed() {
  next_ += chunk_.data_bytes;
  count_bytes(chunk_.data_bytes);
  target_->count_bytes(chunk_.data_bytes);
  const bool last = chunk_.finish_write;
  chunk_ = {};
  message_.Clear();
  if (!last) {
    read_next();
    return;
  }
  if (part_.end - part_.begin < target_->total_bytes()) wait_for_client([] {});  // for its other streams
  {
    const std::lock_guard lock(copies_mutex_);
    all_received_ = true;
  }
  complete_if_placed();
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
    complete_if_placed();
  }
}

void Upload::complete_if_placed() {
  {
    const std::lock_guard lock(copies_mutex_);
    if (!all_received_ || copies_in_flight_ > 0 || placed_) return;
    placed_ = true;
  }
  if (!ended()) target_->complete(part_);
}

bool Upload::answer(const ResidentBuffer& buffer) {
  v1::Buffer message;
  write_buffer(buffer, message);
  use_call([&] {
    bool own = false;
    grpc::SerializationTraits<v1::Buffer>::Serialize(message, response_, &own);
  });
  return end(absl::OkStatus());
}

void Upload::make_way() {
  end(absl::AbortedError(concat("another stream brings the bytes ", part_.begin, " to ", part_.end,
                                " of this upload; the newest goes on")));
}

std::size_t Upload::moved_bytes() const {
  const UploadTarget* target = watched_;
  return target != nullptr ? target->moved_bytes() : 0;
}

std::int64_t Upload::moved_at() const {
  const UploadTarget* target = watched_;
  return target != nullptr ? target->moved_at() : 0;
}

}  // namespace cumulus::server

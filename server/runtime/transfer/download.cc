#include "server/runtime/transfer/download.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <utility>

#include "proto/checksums.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/fault_points.h"
#include "server/runtime/transfer/chunk_message.h"
#include "server/runtime/transfer/read_range.h"
#include "server/runtime/transfer/transfer_service.h"

namespace cumulus::server {
namespace {

/// A slice that refers to `bytes` and keeps `owner` alive as long as gRPC needs it.
template <class Owner>
grpc::Slice lend(std::span<std::byte> bytes, Owner owner) {
  return {bytes.data(), bytes.size(), [](void* held) { delete static_cast<Owner*>(held); },
          new Owner(std::move(owner))};
}

}  // namespace

Download::Download(Runtime& runtime, FindRing find_ring, Options options,
                   grpc::CallbackServerContext* context)
    : Transfer(std::move(options)), runtime_(runtime), find_ring_(std::move(find_ring)), context_(context) {}

void Download::begin(const grpc::ByteBuffer& message) {
  self_ = shared_from_this();
  if (const absl::Status share = take_share(); !share.ok()) {
    end(share);
    return;
  }
  grpc::ByteBuffer copy = message;  // of references to its slices
  grpc::ProtoBufferReader reader(&copy);
  v1::ReadBufferRequest request;
  if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) {
    end(bad_request("MALFORMED_MESSAGE", "the message is no cumulus.v1.ReadBufferRequest"));
  } else if (const absl::Status status = take_request(request); !status.ok()) {
    end(status);
  } else {
    proceed();
  }
}

absl::Status Download::take_request(const v1::ReadBufferRequest& request) {
  if (request.chunk_bytes() < 0 || static_cast<std::size_t>(request.chunk_bytes()) > kMaxChunkBytes) {
    return bad_field("chunk_bytes",
                     concat("is ", request.chunk_bytes(), "; 1 to ", kMaxChunkBytes,
                            " (Capabilities.max_chunk_bytes) is right, or 0 for that maximum"));
  }
  absl::StatusOr<ReadRange> range =
      ReadRange::find(runtime_, principal(), request.name(), request.read_offset(), request.read_limit());
  if (!range.ok()) return range.status();
  buffer_ = std::move(range->buffer);
  device_ = range->device;
  next_ = range->begin;
  end_ = range->end;
  ring_ = find_ring_(*device_);
  chunk_bytes_ = request.chunk_bytes() > 0 ? static_cast<std::size_t>(request.chunk_bytes()) : kMaxChunkBytes;
  return absl::OkStatus();
}

void Download::proceed() {
  std::unique_lock lock(mutex_);
  if (!writing_ && ready_) {
    grpc::ByteBuffer message = *std::move(ready_);
    ready_.reset();
    writing_ = true;
    lock.unlock();
    write(message);
    lock.lock();
  }
  if (!making_ && !ready_ && next_ < end_) {
    making_ = true;
    lock.unlock();
    make_next();
    return;
  }
  const bool all_sent = next_ == end_ && !making_ && !ready_ && !writing_;
  lock.unlock();
  if (all_sent) end(absl::OkStatus());
}

void Download::write(grpc::ByteBuffer message) {
  written_.Swap(&message);
  wait_for_client([this] { StartWrite(&written_); });
}

void Download::make_next() {
  if (!device_->healthy()) {
    end(failed_device(*device_));
    return;
  }
  const std::size_t offset = next_;
  const std::size_t size = std::min(chunk_bytes_, end_ - offset);
  if (ring_ == nullptr) {
    made(offset, lend({buffer_->memory.host_data() + offset, size}, buffer_));
    return;
  }
  ring_->acquire(StagingRing::Use::kDownload,
                 [self = shared_from_this(), this, offset, size](StagingRing::Slot slot) {
                   if (!ended()) make_from_slot(std::move(slot), offset, size);
                 });
}

void Download::make_from_slot(StagingRing::Slot slot, std::size_t offset, std::size_t size) {
  const std::span<std::byte> bytes(slot.get(), size);
  device_->copy_out(
      buffer_->memory, offset, bytes,
      [self = shared_from_this(), this, slot, bytes, offset](const absl::Status& status) mutable {
        if (!status.ok()) {
          end(status);
        } else {
          made(offset, lend(bytes, std::move(slot)));
        }
      });
}

void Download::made(std::size_t offset, const grpc::Slice& data) {
  std::uint32_t checksum = crc32c({reinterpret_cast<const std::byte*>(data.begin()), data.size()});
  if (fault_due(FaultPoint::FLIPPED_CHECKSUM)) checksum ^= 1;
  grpc::ByteBuffer message = make_download_chunk(static_cast<std::int64_t>(offset), checksum, data);
  {
    const std::lock_guard lock(mutex_);
    ready_ = std::move(message);
    next_ = offset + data.size();
    making_ = false;
  }
  count_bytes(data.size());
  proceed();
}

void Download::OnWriteDone(bool ok) {
  client_moved();
  bool give_up_now = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    give_up_now = !given_up_.ok();
  }
  if (give_up_now) {
    end(given_up_);
  } else if (!ok) {
    end(absl::CancelledError("the client went away"));
  } else {
    proceed();
  }
}

void Download::OnCancel() {
  absl::Status why;
  {
    const std::lock_guard lock(mutex_);
    why = given_up_;
  }
  end(why.ok() ? absl::CancelledError("the client cancelled the download") : why);
}

void Download::give_up(const absl::Status& why) {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = why;
  }
  use_call([this] { context_->TryCancel(); });
}

}  // namespace cumulus::server

#include "library/shared_memory/ring_transfer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "cumulus/v1/shared_memory.pb.h"
#include "library/cancellation.h"
#include "library/shared_memory/filling_slots.h"
#include "library/shared_memory/ring_call.h"
#include "library/transfer_parts.h"
#include "library/transfer_retry.h"
#include "proto/checksums.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

static_assert(kSharedSlotBytes == kChunkBytes, "parts of transfers are whole slots");

absl::Status over_before() { return absl::CancelledError("the call ended before the transfer"); }

/// Of this process, rather than one that the call's end says better.
bool is_own_failure(const absl::Status& status) { return !status.ok() && !absl::IsCancelled(status); }

int choose(ConnectionCount& threads, int wanted, std::size_t bytes) {
  return wanted > 0 ? wanted : threads.choose(bytes);
}

/// The call's own terms: its deadline has room for the array.
CallOptions options_for(Connection& connection, const CallOptions& options, std::size_t bytes) {
  CallOptions result = options;
  result.timeout = connection.deadline(options, transfer_allowance(bytes)) - steady_now();
  return result;
}

/// The copying of an array into the slots of a ring, by the threads of a TransferParts.
class SlotFiller {
 public:
  SlotFiller(RingCall& call, std::size_t threads, std::span<const std::byte> bytes, Checksum checksum)
      : call_(call),
        slots_(call, threads),
        piece_bytes_(threads == 1 && call.region().takes_knocks() ? kSharedPieceBytes : kSharedSlotBytes),
        bytes_(bytes),
        checksums_(checksum == Checksum::kWanted ? count_of(kSharedSlotBytes) : 0) {}

  absl::Status fill(TransferParts& parts, std::size_t index) {
    const TransferPart& part = parts.part(index);
    for (std::size_t offset = part.begin; offset < part.end; offset += piece_bytes_) {
      const std::optional<std::uint32_t> slot = slots_.take(index);
      if (!slot.has_value()) return over_before();
      const std::size_t size = std::min(piece_bytes_, part.end - offset);
      copy(offset, call_.region().slot_to_write(*slot, size));
      if (!call_.wait_until_begun() || !call_.send(SharedMemoryMessage::kFilled, *slot, offset, size))
        return over_before();
      parts.report(index, offset + size - part.begin);
    }
    return absl::OkStatus();
  }

  /// Takes back the slots that the server has, so that none of its messages are left.
  void take_back_slots() { slots_.wait_for(count_of(piece_bytes_)); }

  std::uint32_t checksum() const { return crc32c(std::as_bytes(std::span(checksums_))); }

 private:
  std::size_t count_of(std::size_t bytes) const { return (bytes_.size() + bytes - 1) / bytes; }

  void copy(std::size_t offset, std::span<std::byte> slot) {
    if (!checksums_.empty() && offset % kSharedSlotBytes == 0) {
      const std::size_t chunk = std::min(kSharedSlotBytes, bytes_.size() - offset);
      checksums_[offset / kSharedSlotBytes] = crc32c(bytes_.subspan(offset, chunk));
    }
    std::memcpy(slot.data(), bytes_.data() + offset, slot.size());
  }

  RingCall& call_;
  FillingSlots slots_;
  const std::size_t
      piece_bytes_;  // small ones for one thread: those of more than one come too fast for a GPU
  const std::span<const std::byte> bytes_;
  std::vector<std::uint32_t> checksums_;  // as those of a stream's chunks
};

/// The copying of an array out of the slots of a ring.
class SlotEmptier {
 public:
  SlotEmptier(RingCall& call, std::span<std::byte> destination, CopyChoice& copies)
      : call_(call), destination_(destination), copies_(copies) {}

  absl::Status empty(TransferParts& parts, std::size_t index) {
    if (!call_.wait_until_begun()) return over_before();
    if (index == 0 && !call_.gave()) give_first_slots();
    while (left_ > 0) {
      // Without one, another thread may have the last piece under way.
      const std::optional<SharedMemoryMessage> message = call_.next();
      if (!message.has_value()) break;
      if (!copy(*message)) return absl::DataLossError("download: the server names bytes that are not there");
      parts.report_piece(index, {message->offset, message->offset + message->bytes});
      if (given_++ < pieces()) call_.send(SharedMemoryMessage::kFree, message->slot, 0, 0);
      if ((left_ -= message->bytes) == 0) call_.stop();
    }
    return absl::OkStatus();
  }

  bool complete() const { return left_ == 0; }

 private:
  std::size_t pieces() const { return (destination_.size() + kSharedSlotBytes - 1) / kSharedSlotBytes; }

  void give_first_slots() {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kSharedSlots, pieces()));
    for (std::uint32_t slot = 0; slot < count; ++slot) call_.send(SharedMemoryMessage::kFree, slot, 0, 0);
  }

  bool copy(const SharedMemoryMessage& message) {
    if (message.kind != SharedMemoryMessage::kFilled || message.slot >= kSharedSlots ||
        message.offset > destination_.size() || message.bytes > destination_.size() - message.offset ||
        message.bytes > kSharedSlotBytes)
      return false;
    copies_.copy(destination_.subspan(message.offset, message.bytes),
                 call_.region().slot(message.slot).first(message.bytes));
    return true;
  }

  RingCall& call_;
  const std::span<std::byte> destination_;
  CopyChoice& copies_;
  std::atomic<std::size_t> given_ = kSharedSlots;
  std::atomic<std::size_t> left_ = destination_.size();
};

}  // namespace

std::optional<absl::StatusOr<Uploaded>> write_through_ring(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum) {
  if (bytes.size() < kMinSharedBytes) return std::nullopt;
  const std::shared_ptr<RingCall> call = RingCall::make(connection);
  if (call == nullptr) return std::nullopt;
  ConnectionCount& threads = connection.shared_memory().upload_threads();
  const absl::Time start = steady_now();
  TransferParts parts(split_transfer(bytes.size(), choose(threads, options.connections, bytes.size())),
                      options.call.cancellation, options.progress);
  const CancellationScope scope(parts.stop(), [call] { call->abandon(); });
  SlotFiller filler(*call, parts.count(), bytes, checksum);
  v1::WriteSharedRequest request;
  *request.mutable_spec() = spec;
  call->start(std::move(request), options_for(connection, options.call, bytes.size()), context);
  const absl::Status filled = parts.run(TransferParts::EndsWith::kAllParts,
                                        [&](std::size_t index) { return filler.fill(parts, index); });
  if (filled.ok()) filler.take_back_slots();
  const absl::StatusOr<std::string> answer = call->finish();
  if (is_own_failure(filled)) return filled;
  if (!answer.ok()) {
    if (call->goes_another_way(answer.status())) return std::nullopt;
    return answer.status();
  }
  threads.note(static_cast<int>(parts.count()), bytes.size(), steady_now() - start);
  Uploaded uploaded{{}, filler.checksum()};
  if (absl::Status parsed = wire::parse(*answer, uploaded.buffer); !parsed.ok()) return parsed;
  return uploaded;
}

std::optional<absl::Status> read_through_ring(Connection& connection, const CallContext& context,
                                              const std::string& name, std::span<std::byte> destination,
                                              const DownloadOptions& options) {
  if (destination.size() < kMinSharedBytes) return std::nullopt;
  const std::shared_ptr<RingCall> call = RingCall::make(connection);
  if (call == nullptr) return std::nullopt;
  ConnectionCount& threads = connection.shared_memory().download_threads();
  const absl::Time start = steady_now();
  TransferParts parts(
      split_transfer(destination.size(), choose(threads, options.connections, destination.size())),
      options.call.cancellation, options.progress, options.arrived);
  const CancellationScope scope(parts.stop(), [call] { call->abandon(); });
  SlotEmptier emptier(*call, destination, connection.shared_memory().download_copies());
  v1::ReadSharedRequest request;
  request.set_name(name);
  call->start(std::move(request), options_for(connection, options.call, destination.size()), context);
  const absl::Status emptied = parts.run(TransferParts::EndsWith::kAllParts,
                                         [&](std::size_t index) { return emptier.empty(parts, index); });
  const absl::Status status = call->finish().status();
  if (is_own_failure(emptied)) return emptied;
  if (!status.ok()) {
    if (call->goes_another_way(status)) return std::nullopt;
    return status;
  }
  if (!emptier.complete()) return absl::DataLossError("download: the server sent fewer bytes than there are");
  threads.note(static_cast<int>(parts.count()), destination.size(), steady_now() - start);
  return absl::OkStatus();
}

}  // namespace cumulus

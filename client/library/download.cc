#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "library/byte_stream.h"
#include "library/outage.h"
#include "library/shared_memory/array_download.h"
#include "library/shared_memory/ring_transfer.h"
#include "library/transfer.h"
#include "library/transfer_parts.h"
#include "library/transfer_retry.h"
#include "proto/checksums.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

constexpr std::uint32_t kOffsetTag = v1::ReadBufferResponse::kOffsetFieldNumber << 3;        // 0: varint
constexpr std::uint32_t kChecksumTag = v1::ReadBufferResponse::kCrc32CFieldNumber << 3 | 5;  // 5: fixed32
constexpr std::uint32_t kDataTag = v1::ReadBufferResponse::kDataFieldNumber << 3 | 2;  // 2: length-delimited

absl::Status broken_chunk(std::size_t offset, std::string_view what) {
  return absl::DataLossError(absl::StrCat("download: the chunk at byte ", offset, " ", std::string(what)));
}

/// Skips a field that this library does not know.
bool skip_field(google::protobuf::io::CodedInputStream& input, std::uint32_t tag) {
  std::uint64_t value = 0;
  std::uint32_t length = 0;
  switch (tag & 7) {
    case 0:
      return input.ReadVarint64(&value);
    case 1:
      return input.Skip(8);
    case 2:
      return input.ReadVarint32(&length) && input.Skip(static_cast<int>(length));
    case 5:
      return input.Skip(4);
    default:
      return false;
  }
}

/// Receives a part of a buffer chunk by chunk into its place, so that the data is copied once.
class Receiver {
 public:
  Receiver(std::span<std::byte> destination, const TransferPart& part)
      : destination_(destination.first(part.end)), received_(part.begin) {}

  /// Byte of the buffer that comes next.
  std::size_t received() const { return received_; }
  std::size_t end() const { return destination_.size(); }
  bool complete() const { return received_ == destination_.size(); }

  /// Takes one ReadBufferResponse.
  absl::Status take(grpc::ByteBuffer& message) {
    grpc::ProtoBufferReader reader(&message);
    google::protobuf::io::CodedInputStream input(&reader);
    std::uint64_t offset = 0;
    std::uint32_t checksum = 0;
    std::uint32_t size = 0;
    while (const std::uint32_t tag = input.ReadTag()) {
      const bool good = tag == kOffsetTag     ? input.ReadVarint64(&offset)
                        : tag == kChecksumTag ? input.ReadLittleEndian32(&checksum)
                        : tag == kDataTag     ? input.ReadVarint32(&size) && read_data(input, size)
                                              : skip_field(input, tag);
      if (!good) return broken_chunk(received_, "is damaged or longer than the buffer");
    }
    if (offset != received_) return broken_chunk(received_, absl::StrCat("says that it is at byte ", offset));
    if (checksum != crc32c(destination_.subspan(received_, size))) {
      return broken_chunk(received_, "does not match its crc32c");
    }
    received_ += size;
    return absl::OkStatus();
  }

 private:
  bool read_data(google::protobuf::io::CodedInputStream& input, std::uint32_t size) {
    return size <= destination_.size() - received_ &&
           input.ReadRaw(destination_.data() + received_, static_cast<int>(size));
  }

  std::span<std::byte> destination_;
  std::size_t received_;
};

/// Reads on until the part is complete or the stream ends; the next chunk arrives while one is checked.
absl::Status receive_chunks(ByteStream& stream, Receiver& receiver, const std::function<void()>& moved) {
  grpc::ByteBuffer chunks[2];
  int arriving = 0;
  stream.start_read(chunks[arriving]);
  while (stream.wait()) {
    grpc::ByteBuffer& chunk = chunks[arriving];
    arriving = 1 - arriving;
    chunks[arriving].Clear();
    stream.start_read(chunks[arriving]);
    if (absl::Status taken = receiver.take(chunk); !taken.ok()) {
      stream.cancel();
      while (stream.wait()) stream.start_read(chunks[arriving]);
      (void)stream.finish();  // CANCELLED, by us
      return taken;
    }
    moved();
  }
  return stream.finish();
}

/// The download of one buffer, in parts.
class BufferDownload {
 public:
  BufferDownload(Connection& connection, const CallContext& context, absl::Time deadline,
                 const std::string& name, std::span<std::byte> destination)
      : connection_(connection),
        context_(context),
        deadline_(deadline),
        name_(name),
        destination_(destination) {}

  /// Fetches one part; where its connection breaks, goes on over the first.
  absl::Status fetch(TransferParts& parts, std::size_t index) const {
    TransferRetry retry(deadline_, parts.stop());
    Receiver receiver(destination_, parts.part(index));
    int lane = static_cast<int>(index);
    while (true) {
      const std::size_t before = receiver.received();
      ByteStream stream(connection_, lane, "/cumulus.v1.BufferTransfer/ReadBuffer", context_, deadline_,
                        parts.stop());
      absl::Status status = attempt(
          stream, receiver, [&] { parts.report(index, receiver.received() - parts.part(index).begin); });
      if (receiver.received() > before) retry.note_progress();
      if (status.ok() || !retry.wait_after(status)) return status;
      if (is_break(status)) lane = 0;
    }
  }

 private:
  /// Reads on from where the receiver stands.
  absl::Status attempt(ByteStream& stream, Receiver& receiver, const std::function<void()>& moved) const {
    v1::ReadBufferRequest request;
    request.set_name(name_);
    request.set_read_offset(static_cast<std::int64_t>(receiver.received()));
    if (receiver.end() < destination_.size())
      request.set_read_limit(static_cast<std::int64_t>(receiver.end() - receiver.received()));
    stream.start_write(wire::serialize(request), true);
    stream.wait();  // where it failed, the read below ends and finish() says why
    const absl::Status status = receive_chunks(stream, receiver, moved);
    // What has come is right, though the connection broke behind it.
    const bool broke_behind = absl::IsUnavailable(status) && receiver.complete() && receiver.end() > 0;
    if (!status.ok() && !broke_behind) return status;
    if (receiver.complete()) return absl::OkStatus();
    return broken_chunk(receiver.received(),
                        absl::StrCat("never came: the server sent fewer than ", receiver.end(), " bytes"));
  }

  Connection& connection_;
  const CallContext& context_;
  const absl::Time deadline_;
  const std::string& name_;
  const std::span<std::byte> destination_;
};

absl::Status download_over(int connections, Connection& connection, const CallContext& context,
                           const std::string& name, std::span<std::byte> destination,
                           const DownloadOptions& options) {
  const absl::Time deadline = connection.deadline(options.call, transfer_allowance(destination.size()));
  TransferParts parts(split_transfer(destination.size(), connections), options.call.cancellation,
                      options.progress, options.arrived);
  const BufferDownload download(connection, context, deadline, name, destination);
  const absl::Time start = steady_now();
  absl::Status status = parts.run(TransferParts::EndsWith::kAllParts,
                                  [&](std::size_t index) { return download.fetch(parts, index); });
  if (status.ok())
    connection.download_connections().note(static_cast<int>(parts.count()), destination.size(),
                                           steady_now() - start);
  return status;
}

}  // namespace

absl::Status read_buffer(Connection& connection, const CallContext& context, const std::string& name,
                         std::span<std::byte> destination, const DownloadOptions& options) {
  if (options.connections == 0) {
    std::optional<absl::Status> read =
        read_into_shared_array(connection, context, name, destination, options);
    if (!read.has_value()) read = read_through_ring(connection, context, name, destination, options);
    if (read.has_value()) return *std::move(read);
  }
  const int connections = options.connections > 0
                              ? options.connections
                              : connection.download_connections().choose(destination.size());
  FewerConnections fewer(connections, options.call.cancellation);
  while (true) {
    absl::Status status = download_over(fewer.connections(), connection, context, name, destination, options);
    if (status.ok() || !fewer.wait_after(status)) return status;
  }
}

}  // namespace cumulus

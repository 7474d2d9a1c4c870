#include "server/runtime/transfer/chunk_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <array>
#include <limits>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Request = v1::WriteBufferRequest;
using Response = v1::ReadBufferResponse;

constexpr std::uint32_t tag_of(int field, WireFormatLite::WireType type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}

bool read_spec(CodedInputStream& input, UploadChunk& chunk) {
  int size = 0;
  if (!input.ReadVarintSizeAsInt(&size)) return false;
  const CodedInputStream::Limit limit = input.PushLimit(size);
  const bool complete = input.BytesUntilLimit() == size &&
                        chunk.spec.emplace().ParseFromCodedStream(&input) && input.BytesUntilLimit() == 0;
  input.PopLimit(limit);
  return complete;
}

/// Notes where the data lies, piece by piece, and goes past it.
bool read_data(CodedInputStream& input, UploadChunk& chunk) {
  int left = 0;
  if (!input.ReadVarintSizeAsInt(&left)) return false;
  chunk.data.clear();
  chunk.data_bytes = static_cast<std::size_t>(left);
  while (left > 0) {
    const void* piece = nullptr;
    int size = 0;
    if (!input.GetDirectBufferPointer(&piece, &size)) return false;
    size = std::min(size, left);
    chunk.data.emplace_back(static_cast<const std::byte*>(piece), static_cast<std::size_t>(size));
    if (!input.Skip(size)) return false;
    left -= size;
  }
  return true;
}

bool read_field(CodedInputStream& input, std::uint32_t tag, UploadChunk& chunk) {
  std::uint64_t number = 0;
  std::uint32_t fixed = 0;
  switch (tag) {
    case tag_of(Request::kSpecFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED):
      return read_spec(input, chunk);
    case tag_of(Request::kWriteOffsetFieldNumber, WireFormatLite::WIRETYPE_VARINT):
      if (!input.ReadVarint64(&number)) return false;
      chunk.write_offset = static_cast<std::int64_t>(number);
      return true;
    case tag_of(Request::kCrc32CFieldNumber, WireFormatLite::WIRETYPE_FIXED32):
      if (!input.ReadLittleEndian32(&fixed)) return false;
      chunk.crc32c = fixed;
      return true;
    case tag_of(Request::kFinishWriteFieldNumber, WireFormatLite::WIRETYPE_VARINT):
      if (!input.ReadVarint64(&number)) return false;
      chunk.finish_write = number != 0;
      return true;
    case tag_of(Request::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED):
      return read_data(input, chunk);
    default:
      return WireFormatLite::SkipField(&input, tag);
  }
}

bool parse(CodedInputStream& input, UploadChunk& chunk) {
  while (const std::uint32_t tag = input.ReadTag()) {
    if (!read_field(input, tag, chunk)) return false;
  }
  return input.ConsumedEntireMessage();
}

}  // namespace

absl::Status parse_upload_chunk(grpc::ByteBuffer& message, UploadChunk& chunk) {
  grpc::ProtoBufferReader reader(&message);
  if (reader.status().ok()) {
    CodedInputStream input(&reader);
    if (parse(input, chunk)) return absl::OkStatus();
  }
  return bad_request("MALFORMED_MESSAGE", "the message is no cumulus.v1.WriteBufferRequest");
}

grpc::ByteBuffer make_download_chunk(std::int64_t offset, std::uint32_t crc32c, const grpc::Slice& data) {
  std::array<std::uint8_t, 32> head;  // three tags of a byte, two varints of at most ten, a fixed32
  std::uint8_t* end = head.data();
  end = CodedOutputStream::WriteTagToArray(
      tag_of(Response::kOffsetFieldNumber, WireFormatLite::WIRETYPE_VARINT), end);
  end = CodedOutputStream::WriteVarint64ToArray(static_cast<std::uint64_t>(offset), end);
  end = CodedOutputStream::WriteTagToArray(
      tag_of(Response::kCrc32CFieldNumber, WireFormatLite::WIRETYPE_FIXED32), end);
  end = CodedOutputStream::WriteLittleEndian32ToArray(crc32c, end);
  end = CodedOutputStream::WriteTagToArray(
      tag_of(Response::kDataFieldNumber, WireFormatLite::WIRETYPE_LENGTH_DELIMITED), end);
  end = CodedOutputStream::WriteVarint64ToArray(data.size(), end);
  const std::array slices = {grpc::Slice(head.data(), static_cast<std::size_t>(end - head.data())), data};
  return {slices.data(), slices.size()};
}

}  // namespace cumulus::server

#include "server/runtime/transfer/chunk_message.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

namespace cumulus::server {
namespace {

/// `bytes` in slices of random sizes, as they may arrive.
grpc::ByteBuffer in_pieces(const std::string& bytes, std::mt19937& random) {
  std::vector<grpc::Slice> slices;
  for (std::size_t offset = 0; offset < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(1 + random() % 40, bytes.size() - offset);
    slices.emplace_back(bytes.data() + offset, size);
    offset += size;
  }
  return {slices.data(), slices.size()};
}

std::string joined(const UploadChunk& chunk) {
  std::string data;
  for (const auto& piece : chunk.data) data.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return data;
}

v1::WriteBufferRequest sample() {
  v1::WriteBufferRequest message;
  message.mutable_spec()->set_session("sessions/x");
  message.mutable_spec()->mutable_spec()->add_shape(300);
  message.set_write_offset(123456789012);
  message.set_crc32c(0xDEADBEEF);
  message.set_finish_write(true);
  message.set_data(std::string(300, 'd') + "end");
  return message;
}

void expect_same(const v1::WriteBufferRequest& message, const UploadChunk& chunk) {
  EXPECT_EQ(chunk.spec.has_value(), message.has_spec());
  if (chunk.spec && message.has_spec()) {
    EXPECT_EQ(chunk.spec->SerializeAsString(), message.spec().SerializeAsString());
  }
  EXPECT_EQ(chunk.write_offset, message.write_offset());
  EXPECT_EQ(chunk.crc32c.has_value(), message.has_crc32c());
  EXPECT_EQ(chunk.crc32c.value_or(0), message.crc32c());
  EXPECT_EQ(chunk.finish_write, message.finish_write());
  EXPECT_EQ(chunk.data_bytes, message.data().size());
  EXPECT_EQ(joined(chunk), message.data());
}

TEST(ChunkMessage, IsReadAsProtobufReadsItHoweverItIsCut) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    v1::WriteBufferRequest message = sample();
    if (trial % 2 == 1) message.clear_spec();
    if (trial % 3 == 1) message.clear_crc32c();
    if (trial % 5 == 1) message.clear_data();
    if (trial % 7 == 1) message.set_write_offset(-1);
    grpc::ByteBuffer bytes = in_pieces(message.SerializeAsString(), random);
    UploadChunk chunk;
    ASSERT_TRUE(parse_upload_chunk(bytes, chunk).ok());
    expect_same(message, chunk);
  }
}

TEST(ChunkMessage, FieldsMayComeInAnyOrderWithUnknownOnesBetween) {
  std::mt19937 random(2);
  v1::WriteBufferRequest data_first;
  data_first.set_data("abc");
  std::string bytes = data_first.SerializeAsString() + "\x7a\x03xyz" + "\x78\x05";  // field 15, twice
  v1::WriteBufferRequest rest = sample();
  rest.clear_data();
  bytes += rest.SerializeAsString();
  grpc::ByteBuffer buffer = in_pieces(bytes, random);
  UploadChunk chunk;
  ASSERT_TRUE(parse_upload_chunk(buffer, chunk).ok());
  rest.set_data("abc");
  expect_same(rest, chunk);
}

TEST(ChunkMessage, OfDataThatIsGivenTwiceTheLastCounts) {
  std::mt19937 random(5);
  v1::WriteBufferRequest first;
  first.set_data("abcdef");
  v1::WriteBufferRequest last = sample();
  last.set_data("xyz");
  grpc::ByteBuffer buffer = in_pieces(first.SerializeAsString() + last.SerializeAsString(), random);
  UploadChunk chunk;
  ASSERT_TRUE(parse_upload_chunk(buffer, chunk).ok());
  expect_same(last, chunk);
}

TEST(ChunkMessage, WhatProtobufRefusesIsRefused) {
  const google::protobuf::LogSilencer silencer;
  std::mt19937 random(3);
  const std::string right = sample().SerializeAsString();
  int refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bytes = right;
    if (trial % 2 == 0) bytes.resize(random() % bytes.size());
    if (!bytes.empty()) bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    v1::WriteBufferRequest message;
    const bool oracle = message.ParseFromString(bytes);
    grpc::ByteBuffer buffer = in_pieces(bytes, random);
    UploadChunk chunk;
    const bool ok = parse_upload_chunk(buffer, chunk).ok();
    ASSERT_EQ(ok, oracle) << trial;
    if (ok) expect_same(message, chunk);
    refused += ok ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(ChunkMessage, ADownloadChunkIsAReadBufferResponse) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{128}, std::size_t{1} << 20}) {
    const std::string data(size, 'x');
    grpc::ByteBuffer buffer = make_download_chunk((std::int64_t{1} << 40) + 1, 0xE3069283, grpc::Slice(data));
    grpc::ProtoBufferReader reader(&buffer);
    v1::ReadBufferResponse message;
    ASSERT_TRUE(message.ParseFromZeroCopyStream(&reader));
    EXPECT_EQ(message.offset(), (std::int64_t{1} << 40) + 1);
    EXPECT_EQ(message.crc32c(), 0xE3069283);
    EXPECT_TRUE(message.data() == data);
  }
}

}  // namespace
}  // namespace cumulus::server

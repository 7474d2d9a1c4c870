#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/status_details.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
using Messages = std::vector<v1::WriteBufferRequest>;
using Code = grpc::StatusCode;

/// Uploads that are wrong in one way each; whatever happens, nothing stays behind.
class UploadErrors : public ::testing::Test {
 protected:
  Messages correct() const { return server_.messages(random_bytes(3 * kMiB)); }
  grpc::Status upload(const Messages& messages) {
    v1::Buffer buffer;
    const grpc::Status status = server_.upload(messages, &buffer);
    EXPECT_TRUE(server_.is_empty());
    return status;
  }

  TransferServer server_{host_device()};
};

TEST_F(UploadErrors, AFirstMessageWithoutASpecIsRefused) {
  Messages messages = correct();
  messages[0].clear_spec();
  expect_bad_field(upload(messages), "spec", "is missing; the first message");
}

TEST_F(UploadErrors, ASecondSpecIsRefused) {
  Messages messages = correct();
  *messages[1].mutable_spec() = messages[0].spec();
  expect_bad_field(upload(messages), "spec", "comes again");
}

TEST_F(UploadErrors, TheSessionMustBeNamedAndKnown) {
  Messages messages = correct();
  messages[0].mutable_spec()->clear_session();
  expect_bad_field(upload(messages), "spec.session", "is empty");
  messages[0].mutable_spec()->set_session("sessions/00000000-0000-0000-0000-000000000000");
  expect_reason(upload(messages), Code::NOT_FOUND, "SESSION_NOT_FOUND");
}

TEST_F(UploadErrors, TheArrayMustBeOne) {
  Messages messages = correct();
  v1::ArraySpec& spec = *messages[0].mutable_spec()->mutable_spec();
  spec.set_element_type(v1::ELEMENT_TYPE_UNSPECIFIED);
  expect_bad_field(upload(messages), "spec.spec.element_type", "set one of UINT8");
  spec.set_element_type(v1::FLOAT32);
  spec.set_shape(0, -7);
  expect_bad_field(upload(messages), "spec.spec.shape[0]", "is -7");
  spec.set_shape(0, std::int64_t{1} << 62);
  expect_bad_field(upload(messages), "spec.spec.shape", "more than can be addressed");
  messages[0].mutable_spec()->clear_spec();
  expect_bad_field(upload(messages), "spec.spec.element_type", "is 0");
}

TEST_F(UploadErrors, TheTimeToLiveMustBePositiveAndAllowed) {
  Messages messages = correct();
  google::protobuf::Duration& ttl = *messages[0].mutable_spec()->mutable_ttl();
  expect_bad_field(upload(messages), "spec.ttl", "is 0; more than 0");
  ttl.set_seconds(-1);
  expect_bad_field(upload(messages), "spec.ttl", "is -1s");
  ttl.set_seconds(1'000'000);
  expect_bad_field(upload(messages), "spec.ttl", "at most 24h");
}

TEST_F(UploadErrors, ALongRequestIdIsRefused) {
  Messages messages = correct();
  messages[0].mutable_spec()->set_request_id(std::string(129, 'x'));
  expect_bad_field(upload(messages), "spec.request_id", "has 129 bytes; at most 128");
}

TEST_F(UploadErrors, MoreThanTheServerTakesIsExhaustion) {
  const grpc::Status status = upload({server_.first(TransferServer::kBudget + 1)});
  expect_reason(status, Code::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_EQ(detail_of<google::rpc::QuotaFailure>(status).violations(0).subject(), "limits:max_buffer_bytes");
}

TEST_F(UploadErrors, MoreThanTheDeviceHasLeftIsExhaustion) {
  v1::Buffer half;
  ASSERT_TRUE(
      server_.upload(server_.messages(std::string(TransferServer::kBudget / 2 + 1, 'x')), &half).ok());
  v1::Buffer buffer;
  const grpc::Status status = server_.upload({server_.first(TransferServer::kBudget / 2)}, &buffer);
  expect_reason(status, Code::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_EQ(detail_of<google::rpc::QuotaFailure>(status).violations(0).subject().substr(0, 8), "sessions");
  EXPECT_TRUE(server_.delete_buffer(half.name()).ok());
  EXPECT_TRUE(server_.is_empty());
}

TEST_F(UploadErrors, MoreThanTheSessionMayHoldIsExhaustion) {
  server_.session = server_.create_session(kMiB);
  expect_reason(upload(correct()), Code::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
}

TEST_F(UploadErrors, ChunksMustComeInOrder) {
  for (const std::int64_t offset : {std::int64_t{-1}, std::int64_t{1}, static_cast<std::int64_t>(2 * kMiB)}) {
    Messages messages = correct();
    messages[1].set_write_offset(offset);
    expect_bad_field(upload(messages), "write_offset", "1048576 bytes came before");
  }
  Messages swapped = correct();
  std::swap(swapped[1], swapped[2]);
  expect_bad_field(upload(swapped), "write_offset", "is 2097152; 1048576 bytes came before");
  Messages twice = correct();
  twice.insert(twice.begin() + 1, twice[1]);
  expect_bad_field(upload(twice), "write_offset", "is 1048576; 2097152 bytes came before");
}

TEST_F(UploadErrors, AChunkWithoutItsChecksumIsRefused) {
  Messages messages = correct();
  messages[1].clear_crc32c();
  expect_bad_field(upload(messages), "crc32c", "is missing");
}

TEST_F(UploadErrors, AFlippedBitIsFoundWhereverItIs) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    Messages messages = correct();
    std::string& data = *messages[random() % messages.size()].mutable_data();
    data[random() % data.size()] ^= static_cast<char>(1 << random() % 8);
    expect_reason(upload(messages), Code::INVALID_ARGUMENT, "CHECKSUM_MISMATCH");
  }
  Messages messages = correct();
  messages[2].set_crc32c(messages[2].crc32c() ^ 1);
  const grpc::Status status = upload(messages);
  expect_reason(status, Code::INVALID_ARGUMENT, "CHECKSUM_MISMATCH");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("the chunk at byte 2097152 has the crc32c"));
}

TEST_F(UploadErrors, AChunkThatIsTooLargeIsRefused) {
  const std::string data = random_bytes(2 * kMiB);
  expect_bad_field(upload(server_.messages(data, kMiB + 1)), "data", "has 1048577 bytes; at most 1048576");
}

TEST_F(UploadErrors, MoreBytesThanTheArrayHasAreRefused) {
  Messages messages = correct();
  messages[0].mutable_spec()->mutable_spec()->set_shape(0, 3 * kMiB - 1);
  const grpc::Status status = upload(messages);
  expect_reason(status, Code::INVALID_ARGUMENT, "SIZE_MISMATCH");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("ends at byte 3145728"));
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("UINT8 [3145727]"));
}

TEST_F(UploadErrors, FewerBytesThanTheArrayHasAreRefused) {
  Messages messages = correct();
  messages[1].set_finish_write(true);
  const grpc::Status status = upload(messages);
  expect_reason(status, Code::INVALID_ARGUMENT, "SIZE_MISMATCH");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("finish_write came after 2097152 bytes"));
}

TEST_F(UploadErrors, AStreamThatEndsWithoutFinishWriteLeavesNothing) {
  Messages messages = correct();
  messages.back().set_finish_write(false);
  expect_reason(upload(messages), Code::INVALID_ARGUMENT, "UPLOAD_INCOMPLETE");
  messages.pop_back();
  expect_reason(upload(messages), Code::INVALID_ARGUMENT, "UPLOAD_INCOMPLETE");
  expect_reason(upload({}), Code::INVALID_ARGUMENT, "UPLOAD_INCOMPLETE");
}

TEST_F(UploadErrors, AMessageInTheMiddleMustHaveData) {
  Messages messages = correct();
  messages[1].clear_data();
  messages[1].clear_crc32c();
  expect_bad_field(upload(messages), "data", "is empty");
}

TEST_F(UploadErrors, ASpecAloneAndAFinishAloneAreAllowed) {
  const std::string data = random_bytes(1000);
  Messages messages = {server_.first(1000)};
  Messages rest = server_.messages(data);
  rest[0].clear_spec();
  rest[0].set_finish_write(false);
  messages.push_back(rest[0]);
  messages.emplace_back().set_write_offset(1000);
  messages.back().set_finish_write(true);
  v1::Buffer buffer;
  ASSERT_TRUE(server_.upload(messages, &buffer).ok());
  EXPECT_EQ(server_.download(buffer.name()), data);
}

/// Sends bytes that need not be messages, and returns the answer.
grpc::Status call_raw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const std::vector<std::string>& messages) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/cumulus.v1.BufferTransfer/" + method, &queue);
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  wait();
  for (const std::string& message : messages) {
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    if (!wait()) break;
  }
  call->WritesDone(nullptr);
  wait();
  grpc::Status status;
  grpc::ByteBuffer response;
  do {
    call->Read(&response, nullptr);
  } while (wait());
  call->Finish(&status, nullptr);
  wait();
  return status;
}

TEST_F(UploadErrors, BytesThatAreNoMessageAreRefused) {
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff"), std::string("\x0a\x7f hello"),
                                   std::string("\x52\xff\xff\xff\xff\x0f"),
                                   std::string("\x52\x05"
                                               "abc")}) {
    expect_reason(call_raw(server_.channel, "WriteBuffer", {bytes}), Code::INVALID_ARGUMENT,
                  "MALFORMED_MESSAGE");
  }
}

TEST_F(UploadErrors, DamagedMessagesNeverPassAndNeverCrash) {
  const google::protobuf::LogSilencer silencer;
  std::mt19937 random(11);
  const Messages messages = server_.messages(random_bytes(2000), 700);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<std::string> bytes;
    for (const v1::WriteBufferRequest& message : messages) bytes.push_back(message.SerializeAsString());
    std::string& damaged = bytes[random() % bytes.size()];
    if (trial % 2 == 0) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    } else {
      damaged.resize(random() % damaged.size());
    }
    (void)call_raw(server_.channel, "WriteBuffer", bytes);
    const auto page = server_.runtime.sessions.list_buffers(server_.session, 10, "", {});
    ASSERT_TRUE(page.ok());
    for (const auto& buffer : page->buffers) {
      // What was damaged and still right (its ttl, say) is a buffer with the right bytes.
      EXPECT_TRUE(server_.download(buffer->name) == random_bytes(2000)) << trial;
      EXPECT_TRUE(server_.delete_buffer(buffer->name).ok());
    }
    ASSERT_TRUE(server_.is_empty()) << trial;
  }
}

class DownloadErrors : public ::testing::Test {
 protected:
  void SetUp() override { request_.set_name(server_.upload(random_bytes(1000)).name()); }
  grpc::Status download() {
    std::vector<v1::ReadBufferResponse> chunks;
    const grpc::Status status = server_.download(request_, chunks);
    EXPECT_TRUE(chunks.empty());
    return status;
  }

  TransferServer server_{host_device()};
  v1::ReadBufferRequest request_;
};

TEST_F(DownloadErrors, TheBufferMustExist) {
  request_.set_name(server_.session + "/buffers/99");
  expect_reason(download(), Code::NOT_FOUND, "BUFFER_NOT_FOUND");
  request_.set_name(server_.session);
  expect_reason(download(), Code::NOT_FOUND, "BUFFER_NOT_FOUND");
  request_.set_name("sessions/00000000-0000-0000-0000-000000000000/buffers/1");
  expect_reason(download(), Code::NOT_FOUND, "SESSION_NOT_FOUND");
  request_.clear_name();
  EXPECT_EQ(download().error_code(), Code::NOT_FOUND);
}

TEST_F(DownloadErrors, TheRangeMustLieInTheBuffer) {
  request_.set_read_offset(1001);
  expect_bad_field(download(), "read_offset", "is 1001; the buffer has 1000 bytes");
  request_.set_read_offset(-1);
  expect_bad_field(download(), "read_offset", "is -1");
  request_.set_read_offset(0);
  request_.set_read_limit(-1);
  expect_bad_field(download(), "read_limit", "is -1");
}

TEST_F(DownloadErrors, TheChunkSizeMustBeOneThatTheServerSends) {
  request_.set_chunk_bytes(-1);
  expect_bad_field(download(), "chunk_bytes", "is -1; 1 to 1048576");
  request_.set_chunk_bytes(1048577);
  expect_bad_field(download(), "chunk_bytes", "is 1048577");
}

TEST_F(DownloadErrors, BytesThatAreNoMessageAreRefused) {
  expect_reason(call_raw(server_.channel, "ReadBuffer", {"\xff\xff"}), Code::INVALID_ARGUMENT,
                "MALFORMED_MESSAGE");
}

}  // namespace
}  // namespace cumulus::testing

// Arrays that several streams bring together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/status_details.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
using Code = grpc::StatusCode;

/// One stream of an upload, over a connection of its own.
class PartStream {
 public:
  explicit PartStream(const TransferServer& server)
      : transfer_(v1::BufferTransfer::NewStub(connect(server.address))),
        writer_(transfer_->WriteBuffer(&context, &buffer)) {}

  /// The messages that bring `data` from `begin` on, before `end`.
  static std::vector<v1::WriteBufferRequest> messages(const TransferServer& server, const std::string& data,
                                                      std::size_t begin, std::size_t end,
                                                      const std::string& upload = "together") {
    std::vector<v1::WriteBufferRequest> result = server.messages(data.substr(begin, end - begin));
    for (v1::WriteBufferRequest& message : result)
      message.set_write_offset(message.write_offset() + static_cast<std::int64_t>(begin));
    *result[0].mutable_spec() = server.first(data.size()).spec();
    result[0].mutable_spec()->set_upload(upload);
    result[0].mutable_spec()->set_part_bytes(static_cast<std::int64_t>(end - begin));
    return result;
  }

  bool write(const v1::WriteBufferRequest& message) { return writer_->Write(message); }
  void write(const std::vector<v1::WriteBufferRequest>& messages) {
    for (const v1::WriteBufferRequest& message : messages) {
      if (!write(message)) return;
    }
  }
  grpc::Status finish() { return writer_->Finish(); }

  grpc::ClientContext context;
  v1::Buffer buffer;

 private:
  static std::shared_ptr<grpc::Channel> connect(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }

  std::unique_ptr<v1::BufferTransfer::Stub> transfer_;
  std::unique_ptr<grpc::ClientWriter<v1::WriteBufferRequest>> writer_;
};

grpc::Status bring(const TransferServer& server, const std::vector<v1::WriteBufferRequest>& messages) {
  PartStream stream(server);
  stream.write(messages);
  return stream.finish();
}

/// As a client does whose connection broke: until the server has noticed.
grpc::Status bring_again(PartStream& stream, const TransferServer& server, const std::string& data,
                         std::size_t begin, std::size_t end) {
  stream.write(PartStream::messages(server, data, begin, end));
  grpc::Status status = stream.finish();
  while (status.error_code() == Code::UNAVAILABLE) {
    PartStream next(server);
    next.write(PartStream::messages(server, data, begin, end));
    status = next.finish();
    stream.buffer = next.buffer;
  }
  return status;
}

enum class Kind { kHost, kStaged };

class JoinedUploads : public ::testing::TestWithParam<Kind> {
 protected:
  static std::unique_ptr<server::Device> device() {
    if (GetParam() == Kind::kHost) return host_device();
    return staged_device();
  }
  static void wait_until_begun(TransferServer& server) {
    EXPECT_TRUE(eventually([&] { return server.reserved_bytes() > 0; }));
  }
};

INSTANTIATE_TEST_SUITE_P(On, JoinedUploads, ::testing::Values(Kind::kHost, Kind::kStaged),
                         [](const auto& where) { return where.param == Kind::kHost ? "Host" : "Staged"; });

TEST_P(JoinedUploads, AreOneBufferWhicheverStreamsBroughtIt) {
  TransferServer server(device());
  const std::string data = random_bytes(9 * kMiB + 77);
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
    std::vector<std::unique_ptr<PartStream>> streams;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      streams.push_back(std::make_unique<PartStream>(server));
      threads.emplace_back([&, i, stream = streams.back().get()] {
        stream->write(
            PartStream::messages(server, data, data.size() * i / count, data.size() * (i + 1) / count));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& stream : streams) {
      const grpc::Status status = stream->finish();
      ASSERT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(stream->buffer.name(), streams[0]->buffer.name());
    }
    EXPECT_EQ(server.runtime.sessions.buffer_count(), 1U);
    EXPECT_EQ(server.reserved_bytes(), 9 * kMiB + 256);
    EXPECT_TRUE(server.download(streams[0]->buffer.name()) == data) << count << " streams";
    EXPECT_TRUE(server.delete_buffer(streams[0]->buffer.name()).ok());
    EXPECT_TRUE(server.is_empty());
  }
}

TEST_P(JoinedUploads, KeepTheHeadOfTheArrayThoughItComesInPieces) {
  TransferServer server(device());
  const std::string data = random_bytes(1000);
  PartStream last(server);
  last.write(PartStream::messages(server, data, 700, 1000));
  PartStream middle(server);
  middle.write(PartStream::messages(server, data, 100, 700));
  PartStream first(server);
  first.write(PartStream::messages(server, data, 0, 100));
  ASSERT_TRUE(first.finish().ok() && middle.finish().ok() && last.finish().ok());
  const auto resident = server.runtime.sessions.find_buffer(first.buffer.name(), {});
  ASSERT_TRUE(resident.ok());
  const std::string head(reinterpret_cast<const char*>((*resident)->head.data()), (*resident)->head.size());
  EXPECT_EQ(head, data.substr(0, 512));
}

TEST_P(JoinedUploads, GoOnWithAnotherStreamWhereOneIsLost) {
  TransferServer server(device());
  const std::string data = random_bytes(6 * kMiB);
  PartStream kept(server);
  kept.write(PartStream::messages(server, data, 0, 3 * kMiB));
  for (const std::size_t chunks : {std::size_t{1}, std::size_t{3}}) {  // in the middle, and after its end
    PartStream lost(server);
    const auto messages = PartStream::messages(server, data, 3 * kMiB, 6 * kMiB);
    // What is lost has other bytes, which may not be seen in the buffer.
    auto wrong = PartStream::messages(server, std::string(6 * kMiB, 'x'), 3 * kMiB, 6 * kMiB);
    wrong.resize(chunks == 1 ? 1 : 2);
    lost.write(wrong);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lost.context.TryCancel();
    EXPECT_FALSE(lost.finish().ok());
  }
  PartStream again(server);
  const grpc::Status status = bring_again(again, server, data, 3 * kMiB, 6 * kMiB);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(kept.finish().ok());
  EXPECT_EQ(kept.buffer.name(), again.buffer.name());
  EXPECT_TRUE(server.download(kept.buffer.name()) == data);
}

TEST_P(JoinedUploads, AskForTheWholePartOfAStreamThatEndedBeforeTheOthers) {
  TransferServer server(device());
  const std::string data = random_bytes(2 * kMiB);
  PartStream first(server);
  first.write(PartStream::messages(server, data, 0, kMiB - 1));
  auto complete = std::make_unique<PartStream>(server);
  complete->write(PartStream::messages(server, data, kMiB, 2 * kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // in which its part is placed
  complete->context.TryCancel();
  (void)complete->finish();
  auto damaged = PartStream::messages(server, data, kMiB, 2 * kMiB);
  damaged[0].set_crc32c(damaged[0].crc32c() ^ 1);
  EXPECT_TRUE(eventually([&] {  // the server has noticed, as the part is free
    return bring(server, damaged).error_message().find("crc32c") != std::string::npos;
  }));
  PartStream gap(server);
  gap.write(PartStream::messages(server, data, kMiB - 1, kMiB));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(server.runtime.sessions.buffer_count(), 0U) << "the lost part does not count as brought";
  PartStream again(server);
  ASSERT_TRUE(bring_again(again, server, data, kMiB, 2 * kMiB).ok());
  ASSERT_TRUE(first.finish().ok() && gap.finish().ok());
  EXPECT_TRUE(server.download(first.buffer.name()) == data);
}

TEST_P(JoinedUploads, FollowTheNewerOfTwoStreamsOfOnePart) {
  TransferServer server(device());
  const std::string data = random_bytes(4 * kMiB);
  PartStream other(server);
  other.write(PartStream::messages(server, data, 0, 2 * kMiB));
  PartStream older(server);  // half-open, perhaps: nothing comes of it any more
  ASSERT_TRUE(older.write(PartStream::messages(server, data, 2 * kMiB, 4 * kMiB)[0]));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which the server reads it
  const grpc::Status refused = bring(server, PartStream::messages(server, data, 2 * kMiB, 4 * kMiB));
  expect_reason(refused, Code::UNAVAILABLE, "PART_UNDER_WAY");
  EXPECT_THAT(refused.error_message(),
              ::testing::HasSubstr("another stream brings the bytes 2097152 to 4194304 too"));
  const grpc::Status replaced = older.finish();
  EXPECT_EQ(replaced.error_code(), Code::ABORTED) << replaced.error_message();
  EXPECT_THAT(replaced.error_message(), ::testing::HasSubstr("the newest goes on"));
  PartStream newer(server);
  ASSERT_TRUE(bring_again(newer, server, data, 2 * kMiB, 4 * kMiB).ok());
  ASSERT_TRUE(other.finish().ok());
  EXPECT_TRUE(server.download(other.buffer.name()) == data);
}

TEST_P(JoinedUploads, RefuseBytesThatAnotherStreamBrings) {
  TransferServer server(device());
  const std::string data = random_bytes(4 * kMiB);
  PartStream stream(server);
  ASSERT_TRUE(stream.write(PartStream::messages(server, data, kMiB, 3 * kMiB)[0]));
  wait_until_begun(server);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::vector<std::pair<std::size_t, std::size_t>> overlaps = {
      {0, kMiB + 1},    {0, 4 * kMiB},        {kMiB, 2 * kMiB},
      {kMiB, 4 * kMiB}, {2 * kMiB, 3 * kMiB}, {3 * kMiB - 1, 4 * kMiB}};
  for (const auto& [begin, end] : overlaps) {
    expect_bad_field(bring(server, PartStream::messages(server, data, begin, end)), "write_offset",
                     "another stream brings the bytes 1048576 to 3145728, and parts may not overlap");
  }
  auto twice = PartStream::messages(server, data, 3 * kMiB, 4 * kMiB);
  twice[0].set_finish_write(false);
  twice.push_back(twice[0]);
  twice[1].clear_spec();
  expect_bad_field(bring(server, twice), "write_offset", "is 3145728; 4194304 bytes came before");
  auto beyond = PartStream::messages(server, data, 3 * kMiB, 4 * kMiB);
  beyond[0].mutable_spec()->set_part_bytes(100);
  grpc::Status status;
  EXPECT_TRUE(eventually([&] {  // once the stream before, of the same bytes, is gone
    status = bring(server, beyond);
    return status.error_message().find("the chunk ends at byte") != std::string::npos;
  })) << status.error_message();
  expect_reason(status, Code::INVALID_ARGUMENT, "SIZE_MISMATCH");
  auto fewer = PartStream::messages(server, data.substr(0, 4 * kMiB), 0, kMiB);
  fewer[0].mutable_spec()->set_part_bytes(kMiB);
  fewer[0].mutable_data()->resize(100);
  fewer[0].set_crc32c(checksum_of(fewer[0].data()));
  expect_reason(bring(server, fewer), Code::INVALID_ARGUMENT, "SIZE_MISMATCH");
  stream.context.TryCancel();
  (void)stream.finish();
  EXPECT_TRUE(server.is_empty());
}

TEST_P(JoinedUploads, AreToldWhatIsWrongWithAPart) {
  TransferServer server(device());
  const std::string data = random_bytes(1000);
  const auto first = [&](std::int64_t offset, std::int64_t bytes) {
    auto messages = PartStream::messages(server, data, 0, 10);
    messages[0].set_write_offset(offset);
    messages[0].mutable_spec()->set_part_bytes(bytes);
    return messages;
  };
  expect_bad_field(bring(server, first(-1, 10)), "write_offset", "is -1; the array UINT8 [1000] has 1000");
  expect_bad_field(bring(server, first(1001, 10)), "write_offset", "is 1001");
  expect_bad_field(bring(server, first(0, 0)), "spec.part_bytes", "is 0;");
  expect_bad_field(bring(server, first(0, -1)), "spec.part_bytes", "is -1;");
  expect_bad_field(bring(server, first(991, 10)), "spec.part_bytes",
                   "9 bytes lie behind write_offset: 1 to that");
  auto alone = PartStream::messages(server, data, 0, 1000, "");
  expect_bad_field(bring(server, alone), "spec.part_bytes", "without spec.upload");
  expect_bad_field(bring(server, PartStream::messages(server, data, 0, 10, std::string(129, 'u'))),
                   "spec.upload", "has 129 bytes");
  PartStream begun(server);
  begun.write(PartStream::messages(server, data, 0, 10));
  wait_until_begun(server);
  expect_bad_field(bring(server, PartStream::messages(server, data + "!", 10, 20)), "spec",
                   "says UINT8 [1001]; the upload together began as UINT8 [1000]");
  auto evictable = PartStream::messages(server, data, 10, 20);
  evictable[0].mutable_spec()->set_evictable(true);
  expect_bad_field(bring(server, evictable), "spec", "the same spec, ttl and evictable");
  begun.context.TryCancel();
  (void)begun.finish();
  EXPECT_TRUE(server.is_empty());
}

TEST_P(JoinedUploads, OfAnEmptyArrayAreOneToo) {
  TransferServer server(device());
  PartStream stream(server);
  stream.write(PartStream::messages(server, "", 0, 0));
  ASSERT_TRUE(stream.finish().ok());
  EXPECT_EQ(stream.buffer.size_bytes(), 0);
}

TEST_P(JoinedUploads, LeaveNothingOnceAllTheirStreamsAreCancelled) {
  TransferServer server(device());
  const std::string data = random_bytes(4 * kMiB);
  PartStream complete(server);
  complete.write(PartStream::messages(server, data, 0, 2 * kMiB));
  PartStream begun(server);
  ASSERT_TRUE(begun.write(PartStream::messages(server, data, 2 * kMiB, 4 * kMiB)[0]));
  wait_until_begun(server);
  begun.context.TryCancel();
  (void)begun.finish();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(server.reserved_bytes(), 4 * kMiB) << "one stream is still there";
  complete.context.TryCancel();
  (void)complete.finish();
  EXPECT_TRUE(server.is_empty());
}

TEST_P(JoinedUploads, CountByStreamsAndAnnounceTheirBytesOnce) {
  server::Configuration settings = TransferServer::configuration();
  settings.principals = server::Principals({.max_transfers = 3, .max_upload_bytes = 1000}, {});
  TransferServer server(device(), settings);
  const std::string data = random_bytes(900);
  auto first = std::make_unique<PartStream>(server);
  first->write(PartStream::messages(server, data, 0, 300));
  wait_until_begun(server);
  PartStream second(server);
  second.write(PartStream::messages(server, data, 300, 600));
  EXPECT_TRUE(eventually([&] {
    return bring(server, server.messages(std::string(101, 'x'))).error_code() == Code::UNAVAILABLE;
  })) << "900 of 1000 bytes are announced";
  auto third = std::make_unique<PartStream>(server);
  third->write(PartStream::messages(server, data, 600, 600 + 1));
  grpc::Status fourth;
  EXPECT_TRUE(eventually([&] {
    fourth = bring(server, PartStream::messages(server, data, 601, 900));
    return fourth.error_code() == Code::RESOURCE_EXHAUSTED;
  })) << fourth.error_message();
  EXPECT_THAT(fourth.error_message(),
              ::testing::HasSubstr("has 3 uploads and downloads, its limit (max_transfers)"));
  first->context.TryCancel();  // who has announced them is gone, and the upload is not
  (void)first->finish();
  first.reset();
  third->context.TryCancel();
  (void)third->finish();
  EXPECT_TRUE(eventually([&] { return bring(server, server.messages(std::string(100, 'x'))).ok(); }));
  expect_reason(bring(server, server.messages(std::string(101, 'x'))), Code::UNAVAILABLE, "NO_MEMORY_NOW");
  second.context.TryCancel();
  (void)second.finish();
}

server::Configuration impatient() {
  server::Configuration settings = TransferServer::configuration();
  settings.limits.stalled_transfer = absl::Milliseconds(400);
  settings.limits.min_upload_rate = 10;
  return settings;
}

TEST_P(JoinedUploads, WaitForAStreamThatMovesAndForNoneThatDoesNot) {
  TransferServer server(device(), impatient());
  const std::string data = random_bytes(2000);
  PartStream complete(server);
  complete.write(PartStream::messages(server, data, 0, 1000));
  PartStream slow(server);
  auto part = PartStream::messages(server, data, 1000, 2000)[0];
  const std::string bytes = part.data();
  for (std::size_t i = 0; i < 10; ++i) {  // longer than a stall may last
    v1::WriteBufferRequest chunk = i == 0 ? part : v1::WriteBufferRequest();
    chunk.set_write_offset(static_cast<std::int64_t>(1000 + i * 100));
    chunk.set_data(bytes.substr(i * 100, 100));
    chunk.set_crc32c(checksum_of(chunk.data()));
    chunk.set_finish_write(i == 9);
    ASSERT_TRUE(slow.write(chunk));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const grpc::Status status = complete.finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(slow.finish().ok());
  EXPECT_TRUE(server.delete_buffer(complete.buffer.name()).ok());

  PartStream alone(server);
  alone.write(PartStream::messages(server, data, 0, 1000));
  const grpc::Status stalled = alone.finish();
  EXPECT_EQ(stalled.error_code(), Code::DEADLINE_EXCEEDED) << stalled.error_message();
  EXPECT_TRUE(server.is_empty());
}

TEST_P(JoinedUploads, MayHaveTheNameOfOneThatIsDone) {
  TransferServer server(device());
  for (int i = 0; i < 3; ++i) {
    PartStream first(server);
    first.write(PartStream::messages(server, "abcd", 0, 2));
    PartStream second(server);
    second.write(PartStream::messages(server, "abcd", 2, 4));
    ASSERT_TRUE(first.finish().ok() && second.finish().ok());
  }
  EXPECT_EQ(server.runtime.sessions.buffer_count(), 3U);
}

}  // namespace
}  // namespace cumulus::testing

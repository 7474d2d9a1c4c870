#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/status_details.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

enum class Kind { kHost, kStaged };

/// Every test of this suite runs where chunks go straight into the buffer, and where they are staged.
class Transfers : public ::testing::TestWithParam<Kind> {
 protected:
  static std::unique_ptr<server::Device> device() {
    if (GetParam() == Kind::kHost) return host_device();
    return staged_device();
  }
};

INSTANTIATE_TEST_SUITE_P(On, Transfers, ::testing::Values(Kind::kHost, Kind::kStaged),
                         [](const auto& where) { return where.param == Kind::kHost ? "Host" : "Staged"; });

TEST_P(Transfers, WhatIsUploadedComesBack) {
  TransferServer server(device());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512},
                                 std::size_t{513}, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB + 7}) {
    const std::string data = random_bytes(size);
    const v1::Buffer buffer = server.upload(data);
    EXPECT_EQ(buffer.size_bytes(), static_cast<std::int64_t>(size));
    EXPECT_EQ(buffer.spec().shape(0), static_cast<std::int64_t>(size));
    EXPECT_TRUE(server.download(buffer.name()) == data) << size << " bytes";
    const auto resident = server.runtime.sessions.find_buffer(buffer.name(), {});
    ASSERT_TRUE(resident.ok());
    const std::string head(reinterpret_cast<const char*>((*resident)->head.data()), (*resident)->head.size());
    EXPECT_EQ(head, data.substr(0, 512));
  }
}

TEST_P(Transfers, MemoryIsCountedWhileTheBufferLives) {
  TransferServer server(device());
  const v1::Buffer buffer = server.upload(random_bytes(3 * kMiB + 1));
  EXPECT_EQ(server.reserved_bytes(), 3 * kMiB + 256);
  EXPECT_TRUE(server.delete_buffer(buffer.name()).ok());
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, ARangeComesInChunksOfTheSizeAskedFor) {
  TransferServer server(device());
  const std::string data = random_bytes(2 * kMiB);
  v1::ReadBufferRequest request;
  request.set_name(server.upload(data).name());
  request.set_read_offset(12345);
  request.set_read_limit(1000);
  request.set_chunk_bytes(300);
  std::vector<v1::ReadBufferResponse> chunks;
  ASSERT_TRUE(server.download(request, chunks).ok());
  ASSERT_EQ(chunks.size(), 4u);
  std::string received;
  for (const v1::ReadBufferResponse& chunk : chunks) {
    EXPECT_EQ(chunk.offset(), static_cast<std::int64_t>(12345 + received.size()));
    EXPECT_LE(chunk.data().size(), 300u);
    received += chunk.data();
  }
  EXPECT_EQ(received, data.substr(12345, 1000));

  request.set_read_offset(static_cast<std::int64_t>(data.size()));
  chunks.clear();
  EXPECT_TRUE(server.download(request, chunks).ok());
  EXPECT_TRUE(chunks.empty());
  request.set_read_offset(static_cast<std::int64_t>(data.size()) - 5);
  request.set_read_limit(0);
  EXPECT_TRUE(server.download(request, chunks).ok());
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].data(), data.substr(data.size() - 5));
}

TEST_P(Transfers, SeveralUploadsAtOnceKeepApart) {
  TransferServer server(device());
  std::vector<std::thread> clients;
  std::atomic<int> right = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      const std::string data = random_bytes(3 * kMiB + i);
      const v1::Buffer buffer = server.upload(data);
      right += server.download(buffer.name()) == data ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, 4);
}

TEST_P(Transfers, AnUploadThatIsCancelledLeavesNothing) {
  TransferServer server(device());
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(8 * kMiB));
  for (std::size_t sent = 0; sent < messages.size(); sent += 3) {
    grpc::ClientContext context;
    v1::Buffer buffer;
    const auto writer = server.transfer->WriteBuffer(&context, &buffer);
    for (std::size_t i = 0; i < sent; ++i) ASSERT_TRUE(writer->Write(messages[i]));
    context.TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
    EXPECT_TRUE(server.is_empty()) << sent << " messages";
  }
}

TEST_P(Transfers, AnUploadWhoseConnectionBreaksLeavesNothing) {
  TransferServer server(device());
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(8 * kMiB));
  {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt("grpc.use_local_subchannel_pool", 1);
    auto channel =
        grpc::CreateCustomChannel(server.address, grpc::InsecureChannelCredentials(), own_connection);
    const auto stub = v1::BufferTransfer::NewStub(channel);
    grpc::ClientContext context;
    v1::Buffer buffer;
    const auto writer = stub->WriteBuffer(&context, &buffer);
    ASSERT_TRUE(writer->Write(messages[0]));
    ASSERT_TRUE(writer->Write(messages[1]));
  }
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, ADownloadReadsOnWhenItsBufferIsDeleted) {
  TransferServer server(device());
  const std::string data = random_bytes(24 * kMiB);
  v1::ReadBufferRequest request;
  request.set_name(server.upload(data).name());
  grpc::ClientContext context;
  const auto reader = server.transfer->ReadBuffer(&context, request);
  v1::ReadBufferResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  std::string received = chunk.data();
  EXPECT_TRUE(server.delete_buffer(request.name()).ok());
  EXPECT_GT(server.reserved_bytes(), 0u);
  while (reader->Read(&chunk)) received += chunk.data();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(received == data);
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, ADownloadThatIsCancelledLetsGoOfTheBuffer) {
  TransferServer server(device());
  v1::ReadBufferRequest request;
  request.set_name(server.upload(random_bytes(24 * kMiB)).name());
  grpc::ClientContext context;
  const auto reader = server.transfer->ReadBuffer(&context, request);
  v1::ReadBufferResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_TRUE(server.delete_buffer(request.name()).ok());
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, AnUploadEndsWithItsSession) {
  TransferServer server(device());
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(4 * kMiB));
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  ASSERT_TRUE(writer->Write(messages[0]));
  ASSERT_TRUE(server.runtime.sessions.delete_session(server.session, {}).ok());
  for (std::size_t i = 1; i < messages.size() && writer->Write(messages[i]);) ++i;
  writer->WritesDone();
  expect_reason(writer->Finish(), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
  EXPECT_TRUE(server.is_empty());
}

server::Configuration impatient() {
  server::Configuration settings = TransferServer::configuration();
  settings.limits.stalled_transfer = absl::Milliseconds(100);
  return settings;
}

TEST_P(Transfers, AnUploadThatStallsEndsAndLeavesNothing) {
  TransferServer server(device(), impatient());
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(4 * kMiB));
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  ASSERT_TRUE(writer->Write(messages[0]));
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("the client moved nothing for 100ms"));
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, AnUploadThatTricklesEndsAndLeavesNothing) {
  server::Configuration settings = impatient();
  settings.limits.min_upload_rate = 10000;
  TransferServer server(device(), settings);
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(kMiB), 10);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  for (const v1::WriteBufferRequest& message : messages) {  // 500 bytes a second
    if (!writer->Write(message)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
  EXPECT_THAT(status.error_message(),
              ::testing::HasSubstr("at least 10000 a second are asked for (min_upload_rate)"));
  EXPECT_TRUE(server.is_empty());
}

TEST_P(Transfers, OfOneClientAreBoundedInNumberAndInWhatTheyAnnounce) {
  server::Configuration settings = TransferServer::configuration();
  server::PrincipalLimits limits;
  limits.max_transfers = 2;
  limits.max_upload_bytes = 1000;
  settings.principals = server::Principals(limits, {});
  TransferServer server(device(), settings);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  ASSERT_TRUE(writer->Write(server.first(900)));
  while (server.reserved_bytes() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::size_t of_the_first = server.reserved_bytes();  // more than its bytes
  v1::Buffer other;
  const grpc::Status announced = server.upload({server.first(101)}, &other);
  expect_reason(announced, grpc::StatusCode::UNAVAILABLE, "NO_MEMORY_NOW");
  EXPECT_THAT(announced.error_message(),
              ::testing::HasSubstr("have 900; at most 1000 (max_upload_bytes) at a time"));
  grpc::ClientContext second_context;
  const auto second = server.transfer->WriteBuffer(&second_context, &buffer);
  ASSERT_TRUE(second->Write(server.first(100)));
  while (server.reserved_bytes() == of_the_first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const grpc::Status third = server.upload(server.messages("x"), &other);
  expect_reason(third, grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
  EXPECT_THAT(third.error_message(),
              ::testing::HasSubstr("has 2 uploads and downloads, its limit (max_transfers)"));
  context.TryCancel();
  second_context.TryCancel();
  (void)writer->Finish();
  (void)second->Finish();
  EXPECT_TRUE(server.is_empty());
  EXPECT_EQ(server.download(server.upload(std::string(5000, 'y')).name()).size(), 5000u);  // one has any size
}

TEST_P(Transfers, ADownloadThatStallsEndsAndLetsGoOfTheBuffer) {
  TransferServer server(device(), impatient());
  v1::ReadBufferRequest request;
  request.set_name(server.upload(random_bytes(64 * kMiB)).name());
  grpc::ClientContext context;
  const auto reader = server.transfer->ReadBuffer(&context, request);
  v1::ReadBufferResponse chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_TRUE(server.delete_buffer(request.name()).ok());
  EXPECT_TRUE(server.is_empty());  // though nobody reads
  std::size_t received = chunk.data().size();
  while (reader->Read(&chunk)) received += chunk.data().size();
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_LT(received, 64 * kMiB);
}

TEST_P(Transfers, TheServersLongestDeadlineEndsATransferThatHasNone) {
  server::Configuration settings = TransferServer::configuration();
  settings.limits.max_deadline = absl::Milliseconds(200);
  settings.limits.stalled_transfer = absl::Seconds(1);
  TransferServer server(device(), settings);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  ASSERT_TRUE(writer->Write(server.first(10)));
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("the deadline passed"));
  EXPECT_TRUE(server.is_empty());
}

TEST(StagedTransfers, AClientIsHeldBackWhileTheDeviceIsBehind) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  TransferServer server(std::move(owned));
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(120 * kMiB));
  device.hold();
  std::atomic<std::size_t> written = 0;
  v1::Buffer buffer;
  grpc::Status status;
  std::thread client([&] {
    grpc::ClientContext context;
    const auto writer = server.transfer->WriteBuffer(&context, &buffer);
    for (const v1::WriteBufferRequest& message : messages) {
      if (!writer->Write(message)) break;
      ++written;
    }
    writer->WritesDone();
    status = writer->Finish();
  });
  EXPECT_TRUE(eventually([&] { return device.waiting_copies() == 8; }));
  std::size_t before = messages.size();
  while (before != written || written == 0) {
    before = written;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_EQ(device.waiting_copies(), 8u);  // a slot each
  EXPECT_LT(written, 60u);  // and what gRPC and the sockets hold, which is the machine's affair
  device.release();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(server.download(buffer.name()) == random_bytes(120 * kMiB));
}

TEST(StagedTransfers, AnUploadThatWaitsForASlotCanBeCancelled) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  server::Configuration settings = TransferServer::configuration();
  settings.principals = server::Principals({.max_transfers = 1}, {});
  TransferServer server(std::move(owned), settings);
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(80 * kMiB));
  device.hold();
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(writer->Write(messages[i]));
  while (device.waiting_copies() < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which the next chunk arrives
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The server knows of it once another transfer may begin.
  const v1::ReadBufferRequest of_nothing;
  std::vector<v1::ReadBufferResponse> chunks;
  while (server.download(of_nothing, chunks).error_code() != grpc::StatusCode::NOT_FOUND) {
  }
  device.release();
  EXPECT_TRUE(server.is_empty());
  EXPECT_EQ(device.all_copies(), 8u) << "the chunk that waited was copied for nobody";
  EXPECT_TRUE(server.download(server.upload("again").name()) == "again");
}

TEST(StagedTransfers, AFlippedBitIsFound) {
  TransferServer server(staged_device());
  std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(3 * kMiB));
  (*messages[1].mutable_data())[77] ^= 1;
  v1::Buffer buffer;
  expect_reason(server.upload(messages, &buffer), grpc::StatusCode::INVALID_ARGUMENT, "CHECKSUM_MISMATCH");
  EXPECT_TRUE(server.is_empty());
}

TEST(StagedTransfers, ABusyDeviceIsNotTakenForAStalledClient) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  server::Configuration settings = TransferServer::configuration();
  settings.limits.stalled_transfer = absl::Milliseconds(200);
  TransferServer server(std::move(owned), settings);
  const std::vector<v1::WriteBufferRequest> messages = server.messages(random_bytes(12 * kMiB));
  device.hold();
  v1::Buffer buffer;
  grpc::Status status;
  std::thread client([&] { status = server.upload(messages, &buffer); });
  while (device.waiting_copies() < 8) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // in which nobody waits for the client
  device.release();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(StagedTransfers, ADeviceThatFailsInAnUploadIsSaidAndLeavesNothing) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  TransferServer server(std::move(owned));
  device.fail_once();
  v1::Buffer buffer;
  expect_reason(server.upload(server.messages(random_bytes(3 * kMiB)), &buffer), grpc::StatusCode::INTERNAL,
                "DEVICE_FAULT");
  EXPECT_TRUE(server.is_empty());
}

TEST(StagedTransfers, ADeviceThatFailsInADownloadIsSaid) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  TransferServer server(std::move(owned));
  v1::ReadBufferRequest request;
  request.set_name(server.upload(random_bytes(3 * kMiB)).name());
  device.fail_once();
  std::vector<v1::ReadBufferResponse> chunks;
  expect_reason(server.download(request, chunks), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
  EXPECT_TRUE(server.delete_buffer(request.name()).ok());
  EXPECT_TRUE(server.is_empty());
}

}  // namespace
}  // namespace cumulus::testing

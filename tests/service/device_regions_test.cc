// Regions of GPU memory, as the protocol has them, on a device whose memory a test can map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "cumulus/v1/server.grpc.pb.h"
#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using Message = SharedMemoryMessage;
using ::testing::HasSubstr;

constexpr std::size_t kGranule = kExportedGranularity;

server::Configuration sharing(std::size_t bytes, std::size_t bytes_per_user) {
  server::Configuration settings = SharedMemoryServer::configuration();
  settings.shared_memory.max_device_bytes = bytes;
  settings.shared_memory.max_device_bytes_per_user = bytes_per_user;
  return settings;
}

server::Configuration sharing() { return sharing(64 * kGranule, 64 * kGranule); }

std::unique_ptr<StagedDevice> gpu() {
  return std::make_unique<StagedDevice>(TransferServer::kBudget, "cuda0");
}

std::int64_t capability(const SharedMemoryServer& server) {
  const auto stub =
      v1::Server::NewStub(grpc::CreateChannel(server.address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::Capabilities answer;
  EXPECT_TRUE(stub->GetCapabilities(&context, {}, &answer).ok());
  return answer.max_shared_device_bytes();
}

std::string refusal(const SharedMemoryServer& server, std::size_t bytes) {
  RawSharedRegion region(server.socket->address());
  EXPECT_FALSE(region.ask(Message::kDevice, bytes));
  EXPECT_TRUE(region.is_closed());
  return region.text;
}

TEST(DeviceRegionRefusals, SayWhatToConfigure) {
  SharedMemoryServer server(gpu());
  EXPECT_THAT(refusal(server, 1000),
              HasSubstr("shared_memory.max_device_bytes (--shared-device-memory) is 0"));
  EXPECT_EQ(capability(server), 0);
  EXPECT_TRUE(server.has_reclaimed_all());
}

TEST(DeviceRegionRefusals, OnTheCpuBackendNameTheOther) {
  SharedMemoryServer server(host_device(), sharing());
  const std::string text = refusal(server, 1000);
  EXPECT_THAT(text, HasSubstr("no device cuda0"));
  EXPECT_THAT(text, HasSubstr("--backend cuda"));
  EXPECT_EQ(capability(server), 0);
  EXPECT_TRUE(server.has_reclaimed_all());
}

TEST(DeviceRegionRefusals, KeepToTheLimits) {
  SharedMemoryServer server(gpu(), sharing(3 * kGranule, 2 * kGranule));
  RawSharedRegion region(server.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, kGranule)) << region.text;
  EXPECT_THAT(refusal(server, kGranule + 1), HasSubstr("(max_device_bytes_per_user)"));
  EXPECT_THAT(refusal(server, 3 * kGranule), HasSubstr("(max_device_bytes)"));
  EXPECT_THAT(refusal(server, std::numeric_limits<std::size_t>::max()), HasSubstr("(max_device_bytes)"));
  EXPECT_THAT(refusal(server, 0), HasSubstr("of at least a byte"));
  region.hang_up();
  EXPECT_TRUE(server.has_reclaimed_all());
}

TEST(DeviceRegionRefusals, KeepToTheDevicesBudget) {
  SharedMemoryServer server(gpu(), sharing(100 * TransferServer::kBudget, 100 * TransferServer::kBudget));
  EXPECT_THAT(refusal(server, TransferServer::kBudget + 1), HasSubstr("device:cuda0"));
  EXPECT_TRUE(server.has_reclaimed_all());
}

class DeviceRegions : public ::testing::Test {
 protected:
  grpc::Status write(const RawSharedRegion& region, std::size_t bytes, v1::Buffer& buffer) {
    grpc::ClientContext context;
    return server_.shared->WriteShared(&context, server_.write_request(region.text, bytes), &buffer);
  }
  /// The name of a buffer that holds `data`, which came through a region of its own. No region is left.
  std::string upload(const std::string& data) {
    v1::Buffer buffer;
    {
      RawSharedRegion region(server_.socket->address());
      EXPECT_TRUE(region.ask(Message::kDevice, data.size())) << region.text;
      std::memcpy(region.memory(), data.data(), data.size());
      const grpc::Status status = write(region, data.size(), buffer);
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
    EXPECT_TRUE(eventually([&] { return server_.socket->shares().device_bytes() == 0; }));
    return buffer.name();
  }
  grpc::Status read(const RawSharedRegion& region, const std::string& name, std::int64_t offset = 0,
                    std::chrono::milliseconds limit = std::chrono::minutes(1)) {
    v1::ReadSharedRequest request;
    request.set_name(name);
    request.set_region(region.text);
    request.set_read_offset(offset);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    v1::ReadSharedResponse response;
    return server_.shared->ReadShared(&context, request, &response);
  }
  std::size_t quota_used() {
    const auto session = server_.runtime.sessions.views(0);
    return session.empty() ? 0 : session.front().session->quota->reserved_bytes();
  }
  void delete_session() {
    v1::DeleteSessionRequest request;
    request.set_name(server_.session);
    google::protobuf::Empty response;
    grpc::ClientContext context;
    EXPECT_TRUE(server_.sessions->DeleteSession(&context, request, &response).ok());
  }

  std::unique_ptr<StagedDevice> device_ = gpu();
  StagedDevice& staged_ = *device_;
  SharedMemoryServer server_{std::move(device_), sharing()};
};

TEST_F(DeviceRegions, AreInTheCapabilities) {
  EXPECT_EQ(capability(server_), static_cast<std::int64_t>(64 * kGranule));
}

TEST_F(DeviceRegions, BringABufferAndTakeOne) {
  const std::string data = random_bytes(kGranule + 77);
  const std::string name = upload(data);
  EXPECT_EQ(server_.download(name), data);
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, data.size())) << region.text;
  ASSERT_EQ(region.bytes(), 2 * kGranule);
  ASSERT_TRUE(read(region, name).ok());
  EXPECT_EQ(std::string(region.memory(), data.size()), data);
  // Behind the buffer there is nothing of anybody's.
  EXPECT_EQ(std::string(region.memory() + data.size(), region.bytes() - data.size()),
            std::string(region.bytes() - data.size(), '\0'));
  ASSERT_TRUE(read(region, name, 1000).ok());
  EXPECT_EQ(std::string(region.memory(), 5000), data.substr(1000, 5000));
}

TEST_F(DeviceRegions, BringAsManyBuffersAsTheirClientWants) {
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 1000)) << region.text;
  v1::Buffer first;
  v1::Buffer second;
  std::memset(region.memory(), 'a', 1000);
  ASSERT_TRUE(write(region, 1000, first).ok());
  std::memset(region.memory(), 'b', 1000);
  ASSERT_TRUE(write(region, 600, second).ok());
  EXPECT_EQ(server_.download(first.name()), std::string(1000, 'a'));
  EXPECT_EQ(server_.download(second.name()), std::string(600, 'b'));
}

TEST_F(DeviceRegions, CountUntilTheirClientHangsUp) {
  const std::string name = upload(random_bytes(5000));
  const std::size_t of_buffer = server_.reserved_bytes();
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 5000)) << region.text;
  EXPECT_EQ(server_.reserved_bytes(), of_buffer + kGranule);
  EXPECT_EQ(server_.socket->shares().device_bytes(), kGranule);
  EXPECT_EQ(quota_used(), of_buffer);
  ASSERT_TRUE(read(region, name).ok());
  ASSERT_TRUE(read(region, name).ok());
  EXPECT_EQ(quota_used(), of_buffer + kGranule);
  // Neither the buffer's end nor the session's takes the memory back from whoever has it mapped.
  delete_session();
  EXPECT_TRUE(eventually([&] { return server_.reserved_bytes() == kGranule; }));
  region.hang_up();
  EXPECT_TRUE(server_.has_reclaimed_all());
  EXPECT_EQ(server_.socket->shares().device_bytes(), 0);
}

TEST_F(DeviceRegions, GiveTheQuotaBackWithTheirConnection) {
  const std::string name = upload(random_bytes(5000));
  const std::size_t before = quota_used();
  {
    RawSharedRegion region(server_.socket->address());
    ASSERT_TRUE(region.ask(Message::kDevice, 5000)) << region.text;
    ASSERT_TRUE(read(region, name).ok());
    EXPECT_EQ(quota_used(), before + kGranule);
  }
  EXPECT_TRUE(eventually([&] { return quota_used() == before; }));
}

TEST_F(DeviceRegions, OfAKilledClientAreReclaimed) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t client = ::fork();
  if (client == 0) {
    RawSharedRegion region(server_.socket->address());
    if (!region.ask(Message::kDevice, 3 * kGranule)) ::_exit(1);
    (void)!::write(pipe[1], "x", 1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(server_.reserved_bytes(), 3 * kGranule);
  ASSERT_EQ(::kill(client, SIGKILL), 0);
  int status = 0;
  ::waitpid(client, &status, 0);
  EXPECT_TRUE(server_.has_reclaimed_all());
  for (const int end : pipe) ::close(end);
}

TEST_F(DeviceRegions, OfOthersAreNotFound) {
  const std::string name = upload(random_bytes(100));
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 100)) << region.text;
  server::Principal other;
  other.name = "other";
  other.proven = true;
  ASSERT_TRUE(server_.socket->find(region.text, other).ok());
  expect_reason(read(region, name), grpc::StatusCode::NOT_FOUND, "REGION_NOT_FOUND");
  v1::Buffer buffer;
  expect_reason(write(region, 100, buffer), grpc::StatusCode::NOT_FOUND, "REGION_NOT_FOUND");
  EXPECT_FALSE(server_.runtime.sessions.find_buffer(name, other).ok());
}

TEST_F(DeviceRegions, ThatAreTooSmallAreRefused) {
  const std::string name = upload(random_bytes(kGranule + 1));
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 1)) << region.text;
  expect_bad_field(read(region, name), "region", "has 2097152 bytes");
  v1::Buffer buffer;
  expect_bad_field(write(region, kGranule + 1, buffer), "region", "has 2097152 bytes");
  EXPECT_TRUE(read(region, name, 1).ok());
}

TEST_F(DeviceRegions, WhoseCallIsLateAreReclaimedOnceTheCopyIsDone) {
  const std::string name = upload(random_bytes(1000));
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 1000)) << region.text;
  staged_.hold();
  EXPECT_EQ(read(region, name, 0, std::chrono::milliseconds(300)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  region.hang_up();
  delete_session();
  EXPECT_GE(server_.reserved_bytes(), kGranule);  // a copy into it is on its way
  staged_.release();
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_F(DeviceRegions, WhoseCopyFailsSayTheDevicesFault) {
  const std::string name = upload(random_bytes(1000));
  RawSharedRegion region(server_.socket->address());
  ASSERT_TRUE(region.ask(Message::kDevice, 1000)) << region.text;
  staged_.fail_once();
  expect_reason(read(region, name), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
  EXPECT_TRUE(read(region, name).ok());
}

TEST_F(DeviceRegions, BelongToOneDevice) {
  StagedDevice elsewhere(TransferServer::kBudget, "cuda1");
  auto region = server::SharedRegion::create_on(elsewhere, kGranule, {}, {});
  ASSERT_TRUE(region.ok()) << region.status();
  const auto sessions = server_.runtime.sessions.views(0);
  ASSERT_EQ(sessions.size(), 1);
  const absl::Status used = (*region)->use_in(*sessions.front().session);
  EXPECT_EQ(used.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(used.message()), HasSubstr("lies on cuda1, and the session on cuda0"));
}

}  // namespace
}  // namespace cumulus::testing

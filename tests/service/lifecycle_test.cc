#include "server/runtime/lifecycle.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/transfer.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/services/sessions_service.h"
#include "tests/support/eventually.h"
#include "tests/support/http2_frames.h"
#include "tests/support/staged_device.h"
#include "tests/support/status_details.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

using server::ServerLifecycle;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// What grpc.health.v1 says of `service` ("" is the whole server): 1 SERVING, 2 NOT_SERVING, -1 no answer.
int health_of(const std::string& address, const std::string& service) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  grpc::CompletionQueue queue;
  const std::string request = std::string(1, '\x0a') + static_cast<char>(service.size()) + service;
  const grpc::Slice slice(request);
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  grpc::Slice bytes;
  if (!status.ok() || !response.DumpToSingleSlice(&bytes).ok() || bytes.size() != 2) return -1;
  return bytes.begin()[1];
}

/// An HTTP/2 connection without calls, which hears what the server says to all.
class SilentConnection {
 public:
  explicit SilentConnection(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    const std::string start = http2::kPreface + http2::frame(http2::kSettings, 0, 0, "");
    EXPECT_EQ(::send(socket_, start.data(), start.size(), MSG_NOSIGNAL), static_cast<ssize_t>(start.size()));
  }
  SilentConnection(const SilentConnection&) = delete;
  ~SilentConnection() { ::close(socket_); }

  /// The error that a GOAWAY within `limit` names, 0 for none; nullopt where no GOAWAY comes.
  std::optional<int> goaway(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
      while (heard_.size() >= kHead && heard_.size() >= kHead + size_of_frame()) {
        const std::string contents = heard_.substr(kHead, size_of_frame());
        const char type = heard_[3];
        heard_.erase(0, kHead + contents.size());
        if (type == http2::kGoAway) return contents[7];  // the last byte of the error, after the last stream
      }
      pollfd entry{socket_, POLLIN, 0};
      std::string bytes(4096, '\0');
      if (::poll(&entry, 1, 10) <= 0) continue;
      const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (count <= 0) return std::nullopt;
      heard_.append(bytes, 0, static_cast<std::size_t>(count));
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kHead = 9;

  std::size_t size_of_frame() const {
    const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(heard_[i])}; };
    return byte(0) << 16 | byte(1) << 8 | byte(2);
  }

  const int socket_;
  std::string heard_;
};

class Lifecycle : public ::testing::Test {
 protected:
  static server::Configuration configuration(const std::vector<std::string>& listen) {
    server::Configuration settings = TransferServer::configuration();
    settings.listen = listen;
    settings.reflection = false;
    settings.shutdown = {absl::ZeroDuration(), absl::Seconds(5), absl::Seconds(2)};
    return settings;
  }
  absl::StatusOr<ServerLifecycle> start(const std::vector<std::string>& listen) {
    return ServerLifecycle::start(configuration(listen), {&sessions_, &transfer_});
  }
  std::string socket_path() const { return folder_ / "server.sock"; }

  static std::vector<server::DeviceSlot> one_slot() {
    std::vector<server::DeviceSlot> slots(1);
    slots[0].device = host_device();
    slots[0].queue = std::make_unique<server::DeviceQueue>(*slots[0].device);
    return slots;
  }
  const TemporaryFolder folder_;
  server::Runtime runtime_{configuration({"127.0.0.1:0"}), one_slot()};
  server::SessionsService sessions_{runtime_};
  server::TransferService transfer_{runtime_};
};

TEST_F(Lifecycle, EveryAddressIsServedAndWrittenToThePortFile) {
  server::Configuration settings = configuration({"127.0.0.1:0", "unix:" + socket_path()});
  settings.port_file = folder_ / "ports";
  auto lifecycle = ServerLifecycle::start(settings, {&sessions_});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  EXPECT_THAT(lifecycle->addresses(),
              ElementsAre(MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"), "unix:" + socket_path()));
  ASSERT_TRUE(lifecycle->announce(settings, {}).ok());
  std::ifstream file(settings.port_file);
  for (const std::string& address : lifecycle->addresses()) {
    std::string line;
    EXPECT_TRUE(std::getline(file, line));
    EXPECT_EQ(line, address);
    EXPECT_EQ(health_of(address, ""), 1);
  }
  struct stat socket_file {};
  ASSERT_EQ(::stat(socket_path().c_str(), &socket_file), 0);
  EXPECT_EQ(socket_file.st_mode & 0777, 0600U);
  lifecycle->drain(settings.shutdown, runtime_);
}

TEST_F(Lifecycle, HealthFollowsTheServerFromStartToDrain) {
  server::Configuration settings = configuration({"127.0.0.1:0"});
  auto lifecycle = ServerLifecycle::start(settings, {&sessions_});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  const std::string address = lifecycle->addresses().front();
  EXPECT_EQ(health_of(address, ""), 2);
  ASSERT_TRUE(lifecycle->announce(settings, {"cumulus.v1.Sessions"}).ok());
  EXPECT_EQ(health_of(address, ""), 1);
  EXPECT_EQ(health_of(address, "cumulus.v1.Sessions"), 1);
  settings.shutdown.lame_duck = absl::Seconds(1);
  std::thread drain([&] { lifecycle->drain(settings.shutdown, runtime_); });
  int health = 1;
  for (int i = 0; i < 100 && health == 1; ++i) health = health_of(address, "cumulus.v1.Sessions");
  EXPECT_EQ(health, 2);  // and answered: a lame duck still serves
  drain.join();
  EXPECT_EQ(health_of(address, ""), -1);
}

TEST_F(Lifecycle, AStaleSocketIsClearedAndALiveOneIsNot) {
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, socket_path().c_str(), sizeof(name.sun_path) - 1);
  ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  ::close(stale);  // the file stays, as after a crash
  auto first = start({"unix:" + socket_path()});
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = start({"unix:" + socket_path()}).status();
  EXPECT_THAT(std::string(second.message()), HasSubstr("already"));
  first->drain(configuration({}).shutdown, runtime_);
}

TEST_F(Lifecycle, AFileThatIsNoSocketIsLeftAlone) {
  const std::string path = folder_ / "text";
  std::ofstream(path) << "precious";
  EXPECT_THAT(std::string(start({"unix:" + path}).status().message()), HasSubstr("is no socket"));
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(Lifecycle, ASocketsFolderThatIsMissingIsNamed) {
  const absl::Status status = start({"unix:/nonexistent/folder/x.sock"}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the folder /nonexistent/folder/: No such file or directory"));
}

TEST_F(Lifecycle, AnAddressThatIsTakenIsNamed) {
  auto first = start({"127.0.0.1:0"});
  ASSERT_TRUE(first.ok()) << first.status();
  server::SessionsService other(runtime_);
  ::testing::internal::CaptureStderr();
  const auto second = ServerLifecycle::start(configuration({first->addresses().front()}), {&other});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "what gRPC says goes into the log";
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot bind " + first->addresses().front()));
  first->drain(configuration({}).shutdown, runtime_);
}

TEST_F(Lifecycle, TheDrainEndsWhatDoesNotEndInTime) {
  auto lifecycle = start({"127.0.0.1:0"});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  auto channel = grpc::CreateChannel(lifecycle->addresses().front(), grpc::InsecureChannelCredentials());
  const auto stub = v1::BufferTransfer::NewStub(channel);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = stub->WriteBuffer(&context, &buffer);
  const auto session =
      runtime_.sessions.create_session({"drained", &runtime_.devices.front(), absl::Minutes(1), 4096});
  ASSERT_TRUE(session.ok());
  v1::WriteBufferRequest message;
  message.mutable_spec()->set_session((*session)->name);
  message.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
  message.mutable_spec()->mutable_spec()->add_shape(1000);
  ASSERT_TRUE(writer->Write(message));
  const auto reserved = [this] { return runtime_.devices.front().device->budget()->reserved_bytes(); };
  while (reserved() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lifecycle->drain({absl::ZeroDuration(), absl::Milliseconds(200), absl::Seconds(2)}, runtime_);
  expect_reason(writer->Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(Lifecycle, NothingNewBeginsWhileSessionsComeToTheirEnd) {
  auto lifecycle = start({"127.0.0.1:0"});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  const auto old =
      runtime_.sessions.create_session({"old", &runtime_.devices.front(), absl::Minutes(1), 4096});
  ASSERT_TRUE(old.ok());
  auto drained = std::async(std::launch::async, [&] {
    lifecycle->drain({absl::ZeroDuration(), absl::Minutes(1), absl::Seconds(2)}, runtime_);
  });
  while (runtime_.drain.admits().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  const auto stub = v1::Sessions::NewStub(
      grpc::CreateChannel(lifecycle->addresses().front(), grpc::InsecureChannelCredentials()));
  v1::CreateSessionRequest create;
  create.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  v1::Session session;
  grpc::ClientContext fresh;
  const grpc::Status refused = stub->CreateSession(&fresh, create, &session);
  expect_reason(refused, grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_GT(detail_of<google::rpc::RetryInfo>(refused).retry_delay().nanos(), 0);

  v1::GetSessionRequest get;
  get.set_name((*old)->name);
  grpc::ClientContext again;
  EXPECT_TRUE(stub->GetSession(&again, get, &session).ok());
  EXPECT_EQ(drained.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  v1::DeleteSessionRequest remove;
  remove.set_name((*old)->name);
  google::protobuf::Empty empty;
  grpc::ClientContext last;
  EXPECT_TRUE(stub->DeleteSession(&last, remove, &empty).ok());
  EXPECT_EQ(drained.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(Lifecycle, ConnectionsAreToldThatTheServerGoesOnceItsSessionsHaveEnded) {
  auto lifecycle = start({"unix:" + socket_path()});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  const auto session =
      runtime_.sessions.create_session({"old", &runtime_.devices.front(), absl::Minutes(1), 4096});
  ASSERT_TRUE(session.ok());
  SilentConnection connection(socket_path());
  auto drained = std::async(std::launch::async, [&] {
    lifecycle->drain({absl::ZeroDuration(), absl::Minutes(1), absl::Seconds(2)}, runtime_);
  });
  while (runtime_.drain.admits().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(connection.goaway(std::chrono::milliseconds(200)), std::nullopt) << "a session may go on";
  EXPECT_TRUE(runtime_.sessions.delete_session((*session)->name, {}).ok());
  EXPECT_EQ(connection.goaway(std::chrono::seconds(20)), 0);
}

TEST_F(Lifecycle, AWatchEndsWithTheDrainAndSaysWhy) {
  auto lifecycle = start({"127.0.0.1:0"});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  ASSERT_TRUE(lifecycle->announce(configuration({}), {"cumulus.v1.Sessions"}).ok());
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(lifecycle->addresses().front(), grpc::InsecureChannelCredentials()));
  using Response = grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("cumulus.v1.Sessions");
  grpc::ClientContext context;
  const auto watch = stub->Watch(&context, request);
  Response response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVING);
  request.set_service("nothing");
  grpc::ClientContext unknown_context;
  const auto unknown = stub->Watch(&unknown_context, request);
  ASSERT_TRUE(unknown->Read(&response));
  EXPECT_EQ(response.status(), Response::SERVICE_UNKNOWN);
  auto drained =
      std::async(std::launch::async, [&] { lifecycle->drain(configuration({}).shutdown, runtime_); });
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), Response::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&response));
  expect_reason(watch->Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_FALSE(unknown->Read(&response));
  expect_reason(unknown->Finish(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
}

TEST_F(Lifecycle, TheWatchdogHearsAServerThatServes) {
  auto lifecycle = start({"127.0.0.1:0", "unix:" + socket_path()});
  ASSERT_TRUE(lifecycle.ok()) << lifecycle.status();
  for (const std::string& address : lifecycle->addresses())
    EXPECT_TRUE(server::answers(server::parse_listen_address(address).value(), absl::Seconds(5))) << address;
  lifecycle->drain(configuration({}).shutdown, runtime_);
}

TEST_F(Lifecycle, TheWatchdogNoticesAServerThatTakesNoConnection) {
  // The kernel takes a few connections for a socket that nobody accepts from, and nobody answers them.
  server::ListenAddress address = server::parse_listen_address("127.0.0.1:0").value();
  const auto sockets = server::listen_at(address, address.port);
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  std::promise<std::string> deaf;
  server::Watchdog watchdog(
      {address}, {.interval = absl::Milliseconds(50), .failures = 2},
      [&](const std::string& text) { deaf.set_value(text); }, [] { return std::uint64_t{0}; });
  std::future<std::string> said = deaf.get_future();
  ASSERT_EQ(said.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(said.get(), address.text);
}

/// Takes connections, answers each, and counts them.
class AnsweringListener {
 public:
  AnsweringListener() : sockets_(server::listen_at(address_, address_.port).value()) {
    thread_ = std::thread([this] {
      while (!stopping_) {
        pollfd entry{sockets_.front().number(), POLLIN, 0};
        if (::poll(&entry, 1, 5) <= 0) continue;
        const server::Descriptor taken(::accept(entry.fd, nullptr, nullptr));
        (void)!::send(taken.number(), "x", 1, MSG_NOSIGNAL);
        ++count_;
      }
    });
  }
  AnsweringListener(const AnsweringListener&) = delete;
  AnsweringListener& operator=(const AnsweringListener&) = delete;
  ~AnsweringListener() {
    stopping_ = true;
    thread_.join();
  }

  const server::ListenAddress& address() const { return address_; }
  int count() const { return count_; }

 private:
  server::ListenAddress address_ = server::parse_listen_address("127.0.0.1:0").value();
  const std::vector<server::Descriptor> sockets_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> count_ = 0;
  std::thread thread_;
};

TEST_F(Lifecycle, TheWatchdogLooksLessOftenWhileNobodyCalls) {
  const AnsweringListener listener;
  const auto barks = [](const std::string& text) { ADD_FAILURE() << text; };
  std::atomic<std::uint64_t> calls = 0;
  constexpr absl::Duration kInterval = absl::Milliseconds(50);
  const server::Watchdog watchdog({listener.address()}, {.interval = kInterval, .quiet_intervals = 20}, barks,
                                  [&] { return calls.load(); });
  absl::SleepFor(20 * kInterval);
  EXPECT_LE(listener.count(), 8) << "at 1, 3, 7 and 15 intervals";
  const int before = listener.count();
  std::atomic<bool> called = false;
  std::thread caller([&] {
    for (; !called; absl::SleepFor(absl::Milliseconds(5))) ++calls;
  });
  EXPECT_TRUE(eventually([&] { return listener.count() >= before + 20; })) << "with calls at each interval";
  called = true;
  caller.join();
}

TEST(EndOfTheProcess, ComesInTimeWhateverRuns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        server::end_process_after(absl::Milliseconds(50), absl::ZeroDuration());
        std::this_thread::sleep_for(std::chrono::minutes(1));
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cumulus::testing

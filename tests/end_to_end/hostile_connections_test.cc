// Connections that attack the daemon: idle ones, half messages, streams that never end.
#include <absl/strings/match.h>
#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/health_watch.h"
#include "tests/support/http2_frames.h"
#include "tests/support/process_tree.h"
#include "tests/support/status_details.h"
#include "tests/support/tries.h"

namespace cumulus::testing {
namespace {

using namespace http2;

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

int connect_to(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  return socket;
}

/// A connection that says what it is told.
class Raw {
 public:
  explicit Raw(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  /// Of a socket that is connected.
  explicit Raw(int socket) : socket_(socket), connected_(true) {}
  Raw(Raw&& other) noexcept : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  Raw(const Raw&) = delete;
  ~Raw() {
    if (socket_ >= 0) ::close(socket_);
  }
  bool connected() const { return connected_; }
  bool send(std::string_view bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// Reads until the other end closes the connection; false where it has not within `limit`.
  bool wait_for_end(Clock::duration limit) const {
    std::string bytes(4096, '\0');
    for (const auto end = Clock::now() + limit; Clock::now() < end;) {
      pollfd entry{socket_, POLLIN, 0};
      if (::poll(&entry, 1, 50) > 0 && ::recv(socket_, bytes.data(), bytes.size(), 0) <= 0) return true;
    }
    return false;
  }

 private:
  int socket_;
  bool connected_ = false;
};

std::string header(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) +
         value;
}

/// What begins a call of `method`, whose message has 1000 bytes, and 10 of them.
std::string half_a_message(const std::string& method) {
  constexpr char kHeaders = 1;
  constexpr char kEndHeaders = 4;
  const std::string fields = header(":method", "POST") + header(":scheme", "http") + header(":path", method) +
                             header(":authority", "x") + header("te", "trailers") +
                             header("content-type", "application/grpc");
  return kPreface + frame(kSettings, 0, 0, "") + frame(kHeaders, kEndHeaders, 1, fields) +
         frame(0, 0, 1, std::string("\0\0\0\x03\xe8", 5) + std::string(10, 'x'));
}

const std::string kMethod = "/cumulus.v1.Operations/BuildSummedAreaTable";

std::shared_ptr<grpc::Channel> connect(const Daemon& daemon) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(daemon.address(), grpc::InsecureChannelCredentials(), own);
}

grpc::Status capabilities(const Daemon& daemon, milliseconds limit) {
  const auto stub = v1::Server::NewStub(connect(daemon));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  context.set_wait_for_ready(true);
  v1::Capabilities response;
  return stub->GetCapabilities(&context, {}, &response);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether a new connection gets an answer in time; how long that took is printed.
bool answers(const Daemon& daemon, milliseconds limit) {
  const auto start = Clock::now();
  const bool answered = capabilities(daemon, limit).ok();
  std::printf("the next connection: %.0f ms\n", 1000 * seconds_since(start));
  return answered;
}

std::unique_ptr<Daemon> start(const std::string& config, const std::string& limits = "true") {
  static const TemporaryFolder folder;
  std::ofstream(folder / "config") << config;
  return std::make_unique<Daemon>(
      std::vector<std::string>{"-c", limits + "; exec \"$@\"", "sh", test_program("cumulusd").string(),
                               "--lame-duck", "0", "--config", folder / "config"},
      "/bin/sh");
}

double seconds_to_end(Daemon& daemon) {
  const auto start = Clock::now();
  daemon.program().send(SIGTERM);
  while (daemon.program().running() && Clock::now() - start < seconds(20))
    std::this_thread::sleep_for(milliseconds(1));
  const double took = seconds_since(start);
  std::printf("ended after %.2f s\n", took);
  return took;
}

TEST(HostileConnections, ThatAreIdleLeaveRoomForOthers) {
  const auto daemon = start("", "ulimit -n 256");
  std::vector<Raw> idle;
  for (int i = 0; i < 300; ++i) idle.emplace_back(daemon->address());
  EXPECT_TRUE(answers(*daemon, seconds(5)));
  idle.clear();
  EXPECT_TRUE(answers(*daemon, seconds(1)));
}

TEST(HostileConnections, OfOneClientAreBounded) {
  const auto daemon = start("connections { max_per_client: 5 }");
  constexpr std::string_view kBegin = "PRI * HTTP/2.0\r\n\r\n";
  std::vector<Raw> open;
  for (int i = 0; i < 5; ++i) {
    open.emplace_back(daemon->address());
    EXPECT_TRUE(open.back().send(kBegin));
  }
  std::this_thread::sleep_for(milliseconds(200));
  const Raw sixth(daemon->address());
  (void)sixth.send(kBegin);  // or it would make room for the watchdog, and so end whatever the bound is
  EXPECT_TRUE(sixth.wait_for_end(seconds(5)));
  EXPECT_FALSE(open.front().wait_for_end(milliseconds(200)));
  open.clear();
  EXPECT_TRUE(capabilities(*daemon, seconds(5)).ok());
}

TEST(HostileConnections, ThatAreSilentMakeRoomForThoseOfTheSameClient) {
  const auto daemon = start("connections { max_per_client: 5 }");
  std::vector<Raw> silent;
  for (int i = 0; i < 20; ++i) silent.emplace_back(daemon->address());
  EXPECT_TRUE(silent.front().wait_for_end(seconds(5)));
  EXPECT_TRUE(capabilities(*daemon, seconds(5)).ok());
}

TEST(HostileConnections, OpenedAndClosedByTheThousandDeafenNobody) {
#ifdef __SANITIZE_ADDRESS__
  constexpr seconds kBar{30};  // gRPC's own part of each connection takes several times as long
#else
  constexpr seconds kBar{1};
#endif
  const auto daemon = start("");
  EXPECT_TRUE(once_in_three([&] {
    for (int i = 0; i < 5000; ++i) Raw(daemon->address());
    return answers(*daemon, kBar);
  }));
}

TEST(HostileConnections, WithHalfAMessageEnd) {
  const auto daemon = start("connections { half_message { seconds: 2 } }");
  const Raw half(daemon->address());
  ASSERT_TRUE(half.send(half_a_message(kMethod)));
  EXPECT_FALSE(half.wait_for_end(seconds(1)));
  EXPECT_TRUE(half.wait_for_end(seconds(4)));
  const Raw silent(daemon->address());
  EXPECT_TRUE(silent.wait_for_end(seconds(5)));
}

TEST(HostileConnections, WithHalfAMessageEndBehindAUnixSocket) {
  const TemporaryFolder folder;
  const std::string path = folder / "socket";
  std::ofstream(folder / "config") << "connections { half_message { seconds: 2 } }";
  const Daemon daemon({"--config", folder / "config", "--listen", "unix:" + path});
  const Raw half(connect_to(path));
  ASSERT_TRUE(half.send(half_a_message(kMethod)));
  EXPECT_FALSE(half.wait_for_end(seconds(1)));
  EXPECT_TRUE(half.wait_for_end(seconds(5)));
}

/// What begins a call, with these flags.
std::string headers_of_a_call(int stream, char flags) {
  return frame(kHeaders, flags, stream,
               header(":method", "POST") + header(":scheme", "http") + header(":path", kMethod) +
                   header(":authority", "x") + header("te", "trailers") +
                   header("content-type", "application/grpc"));
}

// Without a bound it would be 3.5 GiB and more. Sanitizers keep what is freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMostGrowth = std::size_t{1} << 30;
constexpr seconds kFlood{30};
#else
constexpr std::size_t kMostGrowth = std::size_t{256} << 20;
constexpr seconds kFlood{5};
#endif

/// How much more memory a daemon takes at most while 16 connections send `next()` until they are closed, for
/// kFlood at most.
std::size_t growth_by_floods(Daemon& daemon, const std::function<std::string(int round)>& next) {
  const pid_t id = daemon.program().id();
  const std::size_t before = memory_of_tree(id);
  std::size_t peak = before;
  std::list<Raw> open;
  for (int i = 0; i < 16; ++i) {
    open.emplace_back(daemon.address());
    EXPECT_TRUE(open.back().send(kPreface + frame(kSettings, 0, 0, "")));
  }
  const auto end = Clock::now() + kFlood;
  for (int round = 0; !open.empty() && Clock::now() < end; ++round) {
    const std::string bytes = next(round);
    std::erase_if(open, [&](const Raw& connection) { return !connection.send(bytes); });
    peak = std::max(peak, memory_of_tree(id));
  }
  EXPECT_TRUE(open.empty()) << open.size() << " connections are still open";
  std::printf("%.0f MiB more\n", static_cast<double>(peak - before) / (1 << 20));
  return peak - before;
}

TEST(HostileConnections, ThatFloodWithContinuationFramesAreClosed) {
  const auto daemon = start("");
  const auto next = [](int round) {
    return round == 0
               ? headers_of_a_call(1, 0)
               : frame(kContinuation, 0, 1,
                       header("x-" + std::to_string(round), std::string(100, 'v')) + std::string(8000, '\0'));
  };
  EXPECT_LE(growth_by_floods(*daemon, next), kMostGrowth);
  EXPECT_TRUE(capabilities(*daemon, seconds(5)).ok());
}

TEST(HostileConnections, ThatResetTheirCallsWithoutEndAreClosed) {
  const auto daemon = start("");
  const auto next = [](int round) {
    std::string calls;
    for (int i = 0; i < 50; ++i) {
      const int stream = 1 + 2 * (round * 50 + i);
      calls += headers_of_a_call(stream, kEndHeaders) +
               frame(kResetStream, 0, stream, std::string("\0\0\0\x08", 4));
    }
    return calls;
  };
  EXPECT_LE(growth_by_floods(*daemon, next), kMostGrowth);
  EXPECT_TRUE(capabilities(*daemon, seconds(5)).ok());
}

constexpr double kHalfOfTheDrain = 5;  // seconds, which a connection that held it would take twice
constexpr char kDrainOfTenSeconds[] = "shutdown { drain { seconds: 10 } }";

TEST(HostileConnections, WithAWatchHoldNoDrain) {
  const auto daemon = start(kDrainOfTenSeconds);
  const HealthWatch watch(connect(*daemon));
  ASSERT_TRUE(watch.began());
  EXPECT_LT(seconds_to_end(*daemon), kHalfOfTheDrain);
  EXPECT_EQ(daemon->program().wait().exit_code, 0);
}

TEST(HostileConnections, WithHalfAMessageHoldNoDrain) {
  const auto daemon = start(kDrainOfTenSeconds);
  const Raw half(daemon->address());
  ASSERT_TRUE(half.send(half_a_message(kMethod)));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LT(seconds_to_end(*daemon), kHalfOfTheDrain);
  EXPECT_EQ(daemon->program().wait().exit_code, 0);
}

TEST(HostileConnections, WithAWatchAreNotTakenForHalfMessages) {
  const auto daemon = start("connections { half_message { seconds: 1 } }");
  const Raw watch(daemon->address());
  const std::string call = half_a_message("/grpc.health.v1.Health/Watch");
  const std::string whole_empty_message = frame(0, 1, 1, std::string(5, '\0'));
  ASSERT_TRUE(watch.send(call.substr(0, call.size() - 24) + whole_empty_message));
  EXPECT_FALSE(watch.wait_for_end(seconds(4)));
}

/// Calls that leave buffers of some MiB each in a session, which then goes.
void fill_and_empty(const Daemon& daemon) {
  const auto channel = connect(daemon);
  const auto sessions = v1::Sessions::NewStub(channel);
  v1::Session session;
  {
    grpc::ClientContext context;
    v1::CreateSessionRequest request;
    request.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
    ASSERT_TRUE(sessions->CreateSession(&context, request, &session).ok());
  }
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&] {
      const auto operations = v1::Operations::NewStub(connect(daemon));
      v1::BuildSummedAreaTableRequest request;
      request.mutable_options()->set_session(session.name());
      auto& array = *request.mutable_image()->mutable_inline_array();
      array.mutable_spec()->set_element_type(v1::UINT8);
      for (int extent = 0; extent < 2; ++extent) array.mutable_spec()->add_shape(1000);
      array.set_data(std::string(1'000'000, 'x'));
      for (int call = 0; call < 30; ++call) {
        grpc::ClientContext context;
        v1::OperationResult result;
        const grpc::Status status = operations->BuildSummedAreaTable(&context, request, &result);
        EXPECT_TRUE(status.ok()) << status.error_message();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  grpc::ClientContext context;
  v1::DeleteSessionRequest request;
  request.set_name(session.name());
  google::protobuf::Empty response;
  EXPECT_TRUE(sessions->DeleteSession(&context, request, &response).ok());
}

TEST(IdleDaemon, GivesBackTheMemoryOfItsLoad) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
  const auto daemon = start("");
  fill_and_empty(*daemon);
  const auto memory = [&] { return memory_of_tree(daemon->program().id()); };
  const std::size_t after_load = memory();
  const auto start = Clock::now();
  constexpr std::size_t kAllowance = std::size_t{200} << 20;
  while (memory() > kAllowance && Clock::now() - start < seconds(10))
    std::this_thread::sleep_for(milliseconds(100));
  std::this_thread::sleep_for(seconds(4));
  std::printf("%.0f MiB after load, %.0f MiB idle\n", static_cast<double>(after_load) / (1 << 20),
              static_cast<double>(memory()) / (1 << 20));
  EXPECT_LE(memory(), kAllowance);
}

TEST(MalformedMessage, IsTheClientsFault) {
  const auto daemon = start("");
  grpc::GenericStub stub(connect(*daemon));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice garbage("\xff\xff\xff\xff garbage");
  const auto call = stub.PrepareUnaryCall(&context, kMethod, grpc::ByteBuffer(&garbage, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.error_message(), "the message is none that " + kMethod + " takes"))
      << status.error_message();
  EXPECT_EQ(detail_of<google::rpc::ErrorInfo>(status).reason(), "MALFORMED_MESSAGE");
}

}  // namespace
}  // namespace cumulus::testing

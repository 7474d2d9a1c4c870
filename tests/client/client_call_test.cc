#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "cumulus/summed_area_table.h"
#include "tests/client/fake_server.h"

namespace cumulus {
namespace {

using testing::eventually;
using testing::FakeServer;

const std::vector<float> kPixels = {1, 2, 3, 4, 5, 6};

class ClientCall : public ::testing::Test {
 protected:
  static Operation sums() { return build_summed_area_table(ArrayView(kPixels, {2, 3})); }
  static Operation bad_sums() { return build_summed_area_table(ArrayView(std::vector<float>(), {2, 3})); }

  FakeServer server_;
  Client client_ = server_.connect();
};

void expect_pixels(absl::StatusOr<Result> result) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->names(), std::vector<std::string>{"sums"});
  EXPECT_EQ(result->timings().device, "cpu");
  EXPECT_EQ(result->timings().compute, absl::Milliseconds(5));
  const absl::StatusOr<Array> sums = result->fetch("sums");
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(sums->shape(), (Shape{2, 3}));
  const auto values = sums->values<float>();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(std::vector<float>(values->begin(), values->end()), kPixels);
}

TEST_F(ClientCall, RunsASmallJobWithoutASession) { expect_pixels(client_.run(sums())); }

TEST_F(ClientCall, KeepsOutputsOnTheServerInASession) {
  const absl::StatusOr<Session> session = client_.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Result> result = session->run(sums());
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_NE(result->buffer("sums"), nullptr);
  EXPECT_EQ(result->buffer("sums")->shape(), (Shape{2, 3}));
  expect_pixels(std::move(result));

  RunOptions options;
  options.output = Placement::kInline;
  absl::StatusOr<Result> with_answer = session->run(sums(), options);
  ASSERT_TRUE(with_answer.ok()) << with_answer.status();
  EXPECT_EQ(with_answer->buffer("sums"), nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(with_answer->take_buffer("sums").status()));
  expect_pixels(std::move(with_answer));
}

TEST_F(ClientCall, TakesABufferThatOutlivesItsResult) {
  const absl::StatusOr<Session> session = client_.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Buffer> buffer = absl::UnknownError("not yet");
  {
    absl::StatusOr<Result> result = session->run(sums());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(absl::IsNotFound(result->take_buffer("means").status()));
    buffer = result->take_buffer("sums");
    EXPECT_TRUE(result->names().empty());
  }
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(*session->download<float>(*buffer), kPixels);
  expect_pixels(client_.run(sums()));
}

TEST_F(ClientCall, AnswersThroughFuturesAndCallbacks) {
  expect_pixels(client_.run_async(sums()).get());
  std::promise<absl::StatusOr<Result>> answer;
  client_.run_async(sums(), {}, [&](absl::StatusOr<Result> result) { answer.set_value(std::move(result)); });
  expect_pixels(answer.get_future().get());
}

TEST_F(ClientCall, SurvivesThatACallbackDropsTheLastHandle) {
  const auto server = std::make_unique<FakeServer>();
  std::promise<void> dropped;
  {
    auto client = std::make_shared<Client>(server->connect());
    Client& alias = *client;
    alias.run_async(sums(), {},
                    [client = std::move(client), &dropped](const absl::StatusOr<Result>& result) mutable {
                      EXPECT_TRUE(result.ok()) << result.status();
                      client.reset();
                      dropped.set_value();
                    });
  }
  dropped.get_future().wait();
}

TEST_F(ClientCall, ComesBackWhenTheServerSaysWhen) {
  server_.script.turn_away = 3;
  const absl::Time start = absl::Now();
  expect_pixels(client_.run(sums()));
  EXPECT_EQ(server_.script.operations, 4);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(60));
}

TEST_F(ClientCall, GivesTheRefusalWhenTheDeadlineLeavesNoTime) {
  server_.script.turn_away = 1000;
  RunOptions options;
  options.call.timeout = absl::Milliseconds(200);
  const absl::StatusOr<Result> result = client_.run(sums(), options);
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
  EXPECT_EQ(error_reason(result.status()), "QUEUE_FULL");
  EXPECT_EQ(retry_delay(result.status()), absl::Milliseconds(20));
}

TEST_F(ClientCall, PassesOnWhatTheServerSaysOfAnError) {
  const absl::StatusOr<Result> result = client_.run(bad_sums());
  EXPECT_TRUE(absl::IsInvalidArgument(result.status()));
  EXPECT_EQ(error_reason(result.status()), "INVALID_FIELD");
  const std::vector<FieldViolation> fields = field_violations(result.status());
  ASSERT_EQ(fields.size(), 1U);
  EXPECT_EQ(fields[0].field, "image.inline_array.data");
  EXPECT_EQ(fields[0].description, "has no bytes; the shape wants some");
  EXPECT_EQ(retry_delay(result.status()), std::nullopt);
}

TEST_F(ClientCall, RefusesInputsThatDoNotFitIntoACall) {
  const std::vector<float> large(2 << 20);
  const absl::StatusOr<Result> result =
      client_.run(build_summed_area_table(ArrayView(large, {1 << 10, 1 << 11})));
  EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  EXPECT_NE(std::string(result.status().message()).find("upload them to a session first"), std::string::npos);
  EXPECT_EQ(server_.script.operations, 0);
}

TEST_F(ClientCall, EndsAtItsDeadline) {
  server_.script.stall = true;
  RunOptions options;
  options.call.timeout = absl::Milliseconds(50);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client_.run(sums(), options).status()));
  EXPECT_TRUE(eventually([&] { return server_.script.saw_cancellation.load(); }));
}

TEST_F(ClientCall, EndsWhenItIsCancelled) {
  server_.script.stall = true;
  RunOptions options;
  options.call.cancellation.emplace();
  std::future<absl::StatusOr<Result>> result = client_.run_async(sums(), options);
  EXPECT_TRUE(eventually([&] { return server_.script.operations == 1; }));
  options.call.cancellation->cancel();
  EXPECT_TRUE(absl::IsCancelled(result.get().status()));
  EXPECT_TRUE(eventually([&] { return server_.script.saw_cancellation.load(); }));
  // A call that begins cancelled does not reach the server.
  EXPECT_TRUE(absl::IsCancelled(client_.run(sums(), options).status()));
  EXPECT_EQ(server_.script.operations, 1);
}

TEST_F(ClientCall, EndsWhenItIsCancelledBetweenTwoAttempts) {
  server_.script.turn_away = 1000;
  RunOptions options;
  options.call.cancellation.emplace();
  std::future<absl::StatusOr<Result>> result = client_.run_async(sums(), options);
  EXPECT_TRUE(eventually([&] { return server_.script.operations >= 3; }));
  options.call.cancellation->cancel();
  const absl::Status status = result.get().status();
  EXPECT_TRUE(absl::IsCancelled(status) || absl::IsUnavailable(status)) << status;
}

TEST_F(ClientCall, WaitsAsLongAsTheServerSays) {
  server_.script.turn_away = 1;
  server_.script.retry_after_milliseconds = 500;
  const absl::Time start = absl::Now();
  expect_pixels(client_.run(sums()));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(500));
}

TEST_F(ClientCall, StopsWaitingWhenItIsCancelled) {
  server_.script.turn_away = 1;
  server_.script.retry_after_milliseconds = 20'000;
  RunOptions options;
  options.call.cancellation.emplace();
  const absl::Time start = absl::Now();
  std::future<absl::StatusOr<Result>> result = client_.run_async(sums(), options);
  EXPECT_TRUE(eventually([&] { return server_.script.operations == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which the answer arrives
  options.call.cancellation->cancel();
  EXPECT_FALSE(result.get().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(15)) << "it waited for its next attempt";
}

TEST_F(ClientCall, DeletesASessionWithItsHandle) {
  {
    absl::StatusOr<Session> first = client_.create_session();
    absl::StatusOr<Session> second = client_.create_session();
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_NE(first->name(), second->name());
    EXPECT_EQ(first->name().size(), std::string("sessions/").size() + 36);
    EXPECT_EQ(server_.script.open_sessions, 2);
    *first = *std::move(second);
    EXPECT_EQ(server_.script.open_sessions, 1);
  }
  EXPECT_EQ(server_.script.open_sessions, 0);
}

TEST_F(ClientCall, RenewsTheLeaseOfAnIdleSession) {
  SessionOptions options;
  options.ttl = absl::Seconds(3);
  const absl::StatusOr<Session> session = client_.create_session(options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(eventually([&] { return server_.script.renewals >= 2; }));

  options.keep_alive = false;
  const absl::StatusOr<Session> manual = client_.create_session(options);
  ASSERT_TRUE(manual.ok()) << manual.status();
  EXPECT_TRUE(manual->renew().ok());
}

TEST_F(ClientCall, GoesWhereItsSessionIs) {
  FakeServer other;
  server_.script.endpoint = other.target();
  {
    const absl::StatusOr<Session> session = client_.create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->endpoint(), other.target());
    ASSERT_TRUE(session->upload(ArrayView(kPixels, {2, 3})).ok());
    ASSERT_TRUE(session->run(sums()).ok());
    ASSERT_TRUE(session->renew().ok());
  }
  EXPECT_EQ(other.script.uploads, 1);
  EXPECT_EQ(other.script.operations, 1);
  EXPECT_EQ(other.script.renewals, 1);
  EXPECT_EQ(server_.script.uploads + server_.script.operations + server_.script.renewals, 0);
  EXPECT_EQ(server_.script.open_sessions, 1);
  EXPECT_EQ(other.script.open_sessions, -1);  // it was deleted there
}

TEST_F(ClientCall, RenewsTheLeaseAgainAfterARenewalFailed) {
  server_.script.fail_renewals = 1;
  SessionOptions options;
  options.ttl = absl::Seconds(3);
  const absl::StatusOr<Session> session = client_.create_session(options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(eventually([&] { return server_.script.renewals >= 2; }));
}

TEST_F(ClientCall, AsksForHealthAndCapabilities) {
  EXPECT_EQ(*client_.health(), Health::kServing);
  server_.server().GetHealthCheckService()->SetServingStatus(false);
  EXPECT_EQ(*client_.health(), Health::kNotServing);
  const absl::StatusOr<Capabilities> capabilities = client_.capabilities();
  ASSERT_TRUE(capabilities.ok()) << capabilities.status();
  EXPECT_EQ(capabilities->server_version, "fake");
  ASSERT_EQ(capabilities->devices.size(), 1U);
  EXPECT_EQ(capabilities->devices[0].backend, "cpu");
}

TEST(ClientConnect, SaysAtOnceThatNobodyAnswers) {
  const absl::Time start = absl::Now();
  const absl::StatusOr<Client> client = Client::connect("unix:/nonexistent/cumulus");
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
  EXPECT_EQ(std::string(client.status().message())
                .rfind("no Cumulus server answers at unix:/nonexistent/cumulus: ", 0),
            0U);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

/// A port of this machine whose connections nobody takes yet.
class BusyPort {
 public:
  BusyPort() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(::bind(socket_, address, size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    EXPECT_EQ(::getsockname(socket_, address, &size), 0);
  }
  BusyPort(const BusyPort&) = delete;
  BusyPort& operator=(const BusyPort&) = delete;
  ~BusyPort() { ::close(socket_); }

  std::string target() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }
  int accept() const { return ::accept4(socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }

 private:
  int socket_;
  sockaddr_in address_{};
};

TEST_F(ClientCall, ConnectsToAServerThatIsSlowToGreet) {
  const BusyPort port;
  std::thread greeting([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    grpc::AddInsecureChannelFromFd(&server_.server(), port.accept());
  });
  const absl::StatusOr<Client> client = Client::connect(port.target());
  greeting.join();
  EXPECT_TRUE(client.ok()) << client.status();
}

TEST(ClientConnect, GivesUpAtItsTimeout) {
  const BusyPort port;
  const absl::Time start = absl::Now();
  ConnectOptions options;
  options.connect_timeout = absl::Milliseconds(300);
  const absl::Status status = Client::connect(port.target(), options).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

}  // namespace
}  // namespace cumulus

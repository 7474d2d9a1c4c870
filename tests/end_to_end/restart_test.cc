// Work that goes on over restarts of its daemon: no error, no wrong byte, no hang.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/errors.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/summed_area_table.h"
#include "tests/end_to_end/restarting_daemon.h"
#include "tests/support/process_tree.h"

namespace cumulus::testing {
namespace {

constexpr std::int64_t kSide = 128;

std::vector<float> ramp(float first = 1) {
  std::vector<float> values(kSide * kSide);
  std::iota(values.begin(), values.end(), first);
  return values;
}

Client connect(const std::string& target, absl::Duration max_outage = absl::Seconds(30)) {
  absl::StatusOr<Client> client = Client::connect(target, {.max_outage = max_outage});
  EXPECT_TRUE(client.ok()) << client.status();
  return *client;
}

absl::StatusOr<Session> recreated_session(const Client& client) {
  SessionOptions options;
  options.recreate = true;
  return client.create_session(options);
}

bool eventually(absl::Duration limit, const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

/// What the callers compute: sums of a blur of a blur, of which the first stays on the server.
absl::StatusOr<std::vector<double>> last_sums(const Session& session, const Buffer& blurred) {
  const absl::StatusOr<Result> twice = session.run(filter_box(blurred, {2}));
  if (!twice.ok()) return twice.status();
  absl::StatusOr<Result> sums = session.run(build_summed_area_table(*twice->buffer("image")));
  if (!sums.ok()) return sums.status();
  const absl::StatusOr<Array> array = sums->fetch("sums");
  if (!array.ok()) return array.status();
  const auto values = array->values<double>();
  return std::vector<double>(values->begin(), values->end());
}

/// Threads that compute the same over and over, each in a session of its own that is made again, and now and
/// then without one.
class Callers {
 public:
  Callers(const std::string& target, int count) : rounds_(static_cast<std::size_t>(count)) {
    constexpr std::size_t kOfAClient = 8;
    std::vector<Client> clients;
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      if (i % kOfAClient == 0) clients.push_back(connect(target));
      threads_.emplace_back([this, i, client = clients.back()] { call(client, i); });
    }
  }
  ~Callers() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  /// True once each of them has computed anew.
  bool all_go_on(absl::Duration limit) {
    std::vector<int> before(rounds_.begin(), rounds_.end());
    return eventually(limit, [&] {
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (rounds_[i] < before[i] + 2 && !gave_up_) return false;  // the first had begun before
      }
      return true;
    });
  }

  int errors() const { return errors_; }
  int wrong() const { return wrong_; }
  std::string first_error() {
    const std::lock_guard lock(mutex_);
    return first_error_;
  }

 private:
  void call(const Client& client, std::size_t own) {
    const std::vector<float> image = ramp(static_cast<float>(own));
    const absl::StatusOr<Session> session = recreated_session(client);
    if (!session.ok()) return fail(session.status());
    const absl::StatusOr<Buffer> uploaded = session->upload(ArrayView(image, {kSide, kSide}));
    if (!uploaded.ok()) return fail(uploaded.status());
    absl::StatusOr<Result> blurred = session->run(filter_box(*uploaded, {1}));
    if (!blurred.ok()) return fail(blurred.status());
    const Buffer once = *blurred->take_buffer("image");
    const auto expected = last_sums(*session, once);
    if (!expected.ok()) return fail(expected.status());
    while (!stopping_) {
      const auto sums = last_sums(*session, once);
      if (!sums.ok()) return fail(sums.status());
      if (*sums != *expected) ++wrong_;
      const absl::StatusOr<Result> alone = client.run(build_summed_area_table(ArrayView(kSmall, {2, 2})));
      if (!alone.ok()) return fail(alone.status());
      ++rounds_[own];
    }
  }

  void fail(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    if (++errors_ == 1) first_error_ = status.ToString() + " " + error_reason(status);
    gave_up_ = true;
  }

  inline static const std::vector<float> kSmall = {1, 2, 3, 4};

  std::vector<std::atomic<int>> rounds_;
  std::atomic<int> errors_ = 0;
  std::atomic<int> wrong_ = 0;
  std::atomic<bool> gave_up_ = false;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::string first_error_;
  std::vector<std::thread> threads_;
};

/// Restarts the daemon under the callers.
void expect_no_error(int callers, int restarts, int signal) {
  RestartingDaemon daemon({"--drain", "1"});
  Callers calling(daemon.target(), callers);
  ASSERT_TRUE(calling.all_go_on(absl::Seconds(60))) << calling.first_error();
  for (int i = 0; i < restarts; ++i) {
    const Ended ended = daemon.end(signal);
    EXPECT_EQ(ended.exit_code, signal == SIGKILL ? 128 + SIGKILL : 0) << ended.errors;
    daemon.start();
    EXPECT_TRUE(calling.all_go_on(absl::Seconds(60))) << "hangs after restart " << i << calling.first_error();
  }
  EXPECT_EQ(calling.errors(), 0) << calling.first_error();
  EXPECT_EQ(calling.wrong(), 0);
}

TEST(Restart, OfADrainedDaemonIsNoErrorForItsCallers) { expect_no_error(8, 1, SIGTERM); }
TEST(Restart, AfterAKillIsNoErrorForItsCallers) { expect_no_error(8, 1, SIGKILL); }
TEST(NightlyRestart, TenDrainedOnesUnderEightCallers) { expect_no_error(8, 10, SIGTERM); }
TEST(NightlyRestart, TenDrainedOnesUnderSixtyFourCallers) { expect_no_error(64, 10, SIGTERM); }
TEST(NightlyRestart, TenKillsUnderEightCallers) { expect_no_error(8, 10, SIGKILL); }

TEST(Restart, TakesBuffersAlongWhoseInputsHaveNoHandleAnyMore) {
  RestartingDaemon daemon;
  const Client client = connect(daemon.target());
  const absl::StatusOr<Session> session = recreated_session(client);
  ASSERT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Result> built = absl::UnknownError("not yet");
  {
    // What keeps the memory is the library's.
    const auto image = std::make_shared<const std::vector<float>>(ramp());
    UploadOptions options;
    options.keep = image;
    const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(*image, {kSide, kSide}), options);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    const absl::StatusOr<Result> blurred = session->run(filter_box(*buffer, {1}));
    ASSERT_TRUE(blurred.ok()) << blurred.status();
    built = session->run(build_summed_area_table(*blurred->buffer("image")));
    ASSERT_TRUE(built.ok()) << built.status();
  }
  const absl::StatusOr<Array> before = built->fetch("sums");
  ASSERT_TRUE(before.ok()) << before.status();
  const std::string instance = session->instance();
  const std::string name = built->buffer("sums")->name();
  daemon.end(SIGKILL);
  daemon.start();
  const absl::StatusOr<Array> after = built->fetch("sums");
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(std::equal(before->bytes().begin(), before->bytes().end(), after->bytes().begin(),
                         after->bytes().end()));
  EXPECT_NE(session->instance(), instance);
  EXPECT_NE(built->buffer("sums")->name(), name);
}

TEST(Restart, EndsASessionThatIsNotMadeAgain) {
  RestartingDaemon daemon;
  const Client client = connect(daemon.target());
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<float> image = ramp();
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(image, {kSide, kSide}));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  daemon.end(SIGKILL);
  daemon.start();
  absl::Status lost;
  EXPECT_TRUE(eventually(absl::Seconds(20), [&] {
    lost = session->renew();
    return !absl::IsUnavailable(lost);
  }));
  EXPECT_EQ(error_reason(lost), "INSTANCE_RESTARTED") << lost;
  EXPECT_EQ(error_reason(session->run(filter_box(*buffer, {1})).status()), "INSTANCE_RESTARTED");
  EXPECT_EQ(error_reason(session->download<float>(*buffer).status()), "INSTANCE_RESTARTED");
  EXPECT_EQ(error_reason(session->upload(ArrayView(image, {kSide, kSide})).status()), "INSTANCE_RESTARTED");
}

TEST(Restart, NoticesThatMemoryIsNotWhatWasUploaded) {
  RestartingDaemon daemon;
  const Client client = connect(daemon.target());
  const absl::StatusOr<Session> session = recreated_session(client);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<float> image = ramp();
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(image, {kSide, kSide}));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  image.back() += 1;
  daemon.end(SIGKILL);
  daemon.start();
  EXPECT_EQ(session->run(filter_box(*buffer, {1})).status().code(), absl::StatusCode::kDataLoss);
  image.back() -= 1;
  EXPECT_TRUE(session->run(filter_box(*buffer, {1})).ok());
}

TEST(Restart, IsWaitedForNoLongerThanAllowed) {
  RestartingDaemon daemon;
  const Client client = connect(daemon.target(), absl::Seconds(1));
  const absl::StatusOr<Session> session = recreated_session(client);
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<float> image = ramp();
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(image, {kSide, kSide}));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  daemon.end(SIGKILL);
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(session->run(filter_box(*buffer, {1})).status()));
  EXPECT_TRUE(
      absl::IsUnavailable(client.run(build_summed_area_table(ArrayView(image, {kSide, kSide}))).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.create_session().status()));
  EXPECT_GT(absl::Now() - begin, absl::Seconds(1));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
}

TEST(Restart, CanBeStoppedFromOutsideWhileItIsWaitedFor) {
  RestartingDaemon daemon;
  const Client client = connect(daemon.target());
  const absl::StatusOr<Session> session = recreated_session(client);
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<float> image = ramp();
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(image, {kSide, kSide}));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  daemon.end(SIGKILL);
  RunOptions options;
  options.call.cancellation = Cancellation();
  auto call = session->run_async(filter_box(*buffer, {1}), options);
  EXPECT_EQ(call.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  options.call.cancellation->cancel();
  EXPECT_EQ(call.wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

// The worker of a supervised daemon is killed.

pid_t worker_of(Program& supervisor) {
  const std::vector<pid_t> children = children_of(supervisor.id());
  return children.empty() ? -1 : children.front();
}

/// From the worker's end until a call of a session that is made again has its answer.
absl::Duration time_to_recover(RestartingDaemon& daemon) {
  const Client client = connect(daemon.target());
  const absl::StatusOr<Session> session = recreated_session(client);
  EXPECT_TRUE(session.ok()) << session.status();
  const std::vector<float> image = ramp();
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(image, {kSide, kSide}));
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  const absl::Time killed = absl::Now();
  ::kill(worker_of(daemon.program()), SIGKILL);
  const absl::Status after = session->run(filter_box(*buffer, {1})).status();
  EXPECT_TRUE(after.ok()) << after << error_reason(after);
  return absl::Now() - killed;
}

TEST(Supervisor, BringsAKilledWorkerBack) {
  RestartingDaemon daemon({"--supervise"});
  const pid_t first = worker_of(daemon.program());
  ASSERT_GT(first, 0);
  EXPECT_LT(time_to_recover(daemon), absl::Seconds(30));
  EXPECT_NE(worker_of(daemon.program()), first);
  const Ended ended = daemon.end(SIGTERM);
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("the worker ended (signal 9)"), std::string::npos) << ended.errors;
}

TEST(NightlySupervisor, HasAKilledWorkerBackWithinTwoSeconds) {
  RestartingDaemon daemon({"--supervise"});
  for (int i = 0; i < 3; ++i) EXPECT_LT(time_to_recover(daemon), absl::Seconds(2));
}

TEST(Supervisor, TakesItsWorkerAlong) {
  RestartingDaemon daemon({"--supervise"});
  const pid_t worker = worker_of(daemon.program());
  ASSERT_GT(worker, 0);
  daemon.end(SIGKILL);
  EXPECT_TRUE(eventually(absl::Seconds(10), [&] { return ::kill(worker, 0) != 0; }));
}

TEST(Supervisor, EndsWithAWorkerThatNeverServed) {
  const Ended ended =
      Program(test_program("cumulusd"), {"--supervise", "--listen", "unix:/nonexistent/folder/socket"})
          .wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("/nonexistent/folder/"), std::string::npos) << ended.errors;
}

}  // namespace
}  // namespace cumulus::testing

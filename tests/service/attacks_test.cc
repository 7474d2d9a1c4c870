// What one principal can do to another, with the bars of docs/hostile_clients.md. Principals are addresses.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/channel_from.h"
#include "tests/support/hostile_files.h"
#include "tests/support/operation_calls.h"
#include "tests/support/sanitized.h"
#include "tests/support/slow_reader.h"

namespace cumulus::testing {
namespace {

/// Samples of the calls that the victim's are, and a search that takes seconds.
struct Sizes {
  std::int64_t as_large;
  std::int64_t long_queries;
};
constexpr Sizes kSizesOfACpu{1 << 17, 1 << 22};
constexpr Sizes kSizesOfAGpu{1 << 19, 1 << 24};

/// Draws of samples.
class Drawer {
 public:
  Drawer(const std::shared_ptr<grpc::Channel>& channel, const std::string& id, std::int64_t count,
         v1::Priority priority)
      : operations_(v1::Operations::NewStub(channel)) {
    const auto sessions = v1::Sessions::NewStub(channel);
    v1::CreateSessionRequest create;
    create.set_session_id(id);
    v1::Session session;
    grpc::ClientContext context;
    EXPECT_TRUE(sessions->CreateSession(&context, create, &session).ok());
    v1::BuildSamplingTableRequest build;
    set_inline(*build.mutable_weights(), v1::FLOAT32, {32, 32}, std::vector<float>(32 * 32, 1.0F));
    build.set_projection(v1::PLANE);
    build.mutable_options()->set_session(session.name());
    v1::OperationResult table;
    grpc::ClientContext build_context;
    EXPECT_TRUE(operations_->BuildSamplingTable(&build_context, build, &table).ok());
    request_.mutable_table()->set_buffer(table.arrays(0).buffer().name());
    request_.set_count(count);
    request_.mutable_options()->set_session(session.name());
    request_.mutable_options()->set_priority(priority);
    request_.mutable_options()->mutable_output()->mutable_ttl()->set_nanos(1000000);
  }

  const v1::DrawSamplesRequest& request() const { return request_; }
  v1::Operations::Stub& operations() { return *operations_; }

  /// Milliseconds of one call, or -1 where it was refused.
  double time() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::OperationResult result;
    const absl::Time begin = absl::Now();
    const grpc::Status status = operations_->DrawSamples(&context, request_, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() ? absl::ToDoubleMilliseconds(absl::Now() - begin) : -1;
  }

 private:
  std::unique_ptr<v1::Operations::Stub> operations_;
  v1::DrawSamplesRequest request_;
};

/// Keeps `outstanding` calls open for as long as it lives.
class Hog {
 public:
  Hog(const std::shared_ptr<grpc::Channel>& channel, std::size_t outstanding, std::int64_t count,
      v1::Priority priority)
      : drawer_(channel, next_id(), count, priority), outstanding_(outstanding), thread_([this] { run(); }) {}
  ~Hog() {
    stopping_ = true;
    thread_.join();
  }

  int done() const { return done_; }
  int refused() const { return refused_; }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::OperationResult result;
    std::atomic<bool> ended = false;
  };

  static std::string next_id() {
    static int number = 100000;
    return "6f0d9a52-3a64-4a3d-9d0a-0f3b8c" + std::to_string(number++);
  }

  void run() {
    std::list<Call> calls;
    while (!stopping_) {
      calls.remove_if([](const Call& call) { return call.ended.load(); });
      while (calls.size() < outstanding_) begin(calls.emplace_back());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (Call& call : calls) call.context.TryCancel();
    for (Call& call : calls) {
      while (!call.ended) std::this_thread::yield();
    }
  }
  void begin(Call& call) {
    drawer_.operations().async()->DrawSamples(&call.context, &drawer_.request(), &call.result,
                                              [this, &call](const grpc::Status& status) {
                                                if (status.ok()) ++done_;
                                                if (status.error_code() == grpc::StatusCode::UNAVAILABLE)
                                                  ++refused_;
                                                call.ended = true;
                                              });
  }

  Drawer drawer_;
  const std::size_t outstanding_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> done_ = 0;
  std::atomic<int> refused_ = 0;
  std::thread thread_;
};

/// Clients that send slow images, one after another, for as long as this lives.
class ImageHogs {
 public:
  ImageHogs(const std::shared_ptr<grpc::Channel>& channel, int count)
      : operations_(v1::Operations::NewStub(channel)) {
    request_.mutable_options()->set_validate_only(true);
    request_.mutable_image()->mutable_encoded()->set_data(slow_png());
    request_.set_accumulator(v1::UINT64);
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { run(); });
  }
  ~ImageHogs() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  ImageHogs(const ImageHogs&) = delete;
  ImageHogs& operator=(const ImageHogs&) = delete;

 private:
  void run() {
    while (!stopping_) {
      grpc::ClientContext context;
      v1::OperationResult result;
      (void)operations_->BuildSummedAreaTable(&context, request_, &result);
    }
  }

  const std::unique_ptr<v1::Operations::Stub> operations_;
  v1::BuildSummedAreaTableRequest request_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Makes one call after another for as long as this lives.
class Repeated {
 public:
  explicit Repeated(const CallMaker::Call& call) : thread_([this, call] { run(call); }) {}
  ~Repeated() {
    stopping_ = true;
    {
      const std::lock_guard lock(mutex_);
      if (context_ != nullptr) context_->TryCancel();
    }
    thread_.join();
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

 private:
  void run(const CallMaker::Call& call) {
    while (!stopping_) {
      const auto context = std::make_shared<grpc::ClientContext>();
      {
        const std::lock_guard lock(mutex_);
        context_ = context;
      }
      v1::OperationResult result;
      const grpc::Status status = call(*context, result);
      EXPECT_TRUE(status.ok() || stopping_) << status.error_message();
    }
  }

  std::mutex mutex_;
  std::shared_ptr<grpc::ClientContext> context_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

double percentile_99(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[(times.size() * 99 - 1) / 100];
}

/// A server, one that attacks it, and one whose calls are timed.
class Attacked {
 public:
  Attacked(const server::Configuration& configuration, const Sizes& sizes)
      : sizes_(sizes), server_(configuration) {}

  TestServer& server() { return server_; }
  const Sizes& sizes() const { return sizes_; }
  const std::shared_ptr<grpc::Channel>& attackers_channel() const { return attackers_channel_; }
  Drawer& victim() { return victim_; }

 private:
  const Sizes sizes_;
  TestServer server_;
  std::shared_ptr<grpc::Channel> attackers_channel_ = channel_from("127.0.0.2", server_.port());
  Drawer victim_{channel_from("127.0.0.3", server_.port()), "6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e0b",
                 sizes_.as_large, v1::INTERACTIVE};
};

std::unique_ptr<Attacked> attacked_cpu(int calls = 8) {
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_calls = calls;
  configuration.devices.cpu_memory_bytes = std::size_t{2} << 30;
  return std::make_unique<Attacked>(configuration, kSizesOfACpu);
}

std::unique_ptr<Attacked> attacked_gpu() {
  server::Configuration configuration = TestServer::gpu_configuration();
  configuration.devices.gpu_memory_bytes = std::size_t{8} << 30;
  return std::make_unique<Attacked>(configuration, kSizesOfAGpu);
}

/// By where the calls run: "Cpu" or "Gpu". Instantiated as Nightly and SlowCuda.
class Attacks : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const bool on_gpu = GetParam() == "Gpu";
    if (on_gpu && cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    attacked_ = on_gpu ? attacked_gpu() : attacked_cpu();
  }

  double victims_p99() {
    constexpr int kCalls = 100;
    std::vector<double> times;
    for (int i = 0; i < kCalls; ++i) times.push_back(attacked_->victim().time());
    EXPECT_EQ(std::count(times.begin(), times.end(), -1), 0) << "were refused";
    return percentile_99(times);
  }
  /// What attacks for as long as it lives, once it does.
  using Attack = std::function<std::shared_ptr<void>()>;
  /// The least ratio of some rounds, each measured beside the other: other work spoils some, and without
  /// turns (53 to 892 times: docs/hostile_clients.md) none is within the bar; a round takes minutes then.
  void expect_fair(const Attack& attack) {
    constexpr int kRounds = kSanitized ? 1 : 10;
    constexpr double kBar = kSanitized ? 1e6 : 3;  // times
    double least = 1e9;
    victims_p99();  // warm
    const absl::Time end = absl::Now() + absl::Minutes(4);
    for (int round = 0; round < kRounds && least > kBar && absl::Now() < end; ++round) {
      const double alone = victims_p99();
      const std::shared_ptr<void> attacker = attack();
      const double beside = victims_p99();
      std::printf("p99 alone %.2f ms, attacked %.2f ms: %.2f times\n", alone, beside, beside / alone);
      least = std::min(least, beside / alone);
    }
    EXPECT_LE(least, kBar);
  }
  Attack calls(std::size_t outstanding, v1::Priority priority) {
    return [=, this] {
      auto hog = std::make_shared<Hog>(attacked_->attackers_channel(), outstanding,
                                       attacked_->sizes().as_large, priority);
      EXPECT_TRUE(eventually([&] { return attacked_->server().slot().queue->running() > 0; }));
      return hog;
    };
  }

  std::unique_ptr<Attacked> attacked_;
};

TEST_P(Attacks, SixtyFourInteractiveCalls) { expect_fair(calls(64, v1::INTERACTIVE)); }
TEST_P(Attacks, SixHundredInteractiveCalls) { expect_fair(calls(600, v1::INTERACTIVE)); }
TEST_P(Attacks, SixHundredBatchCalls) { expect_fair(calls(600, v1::BATCH)); }
TEST_P(Attacks, OneLongBatchCallAfterAnother) {
  CallMaker maker(attacked_->server(), attacked_->server().create_session(), v1::BATCH);
  const CallMaker::Call search = make_find_neighbors(maker, attacked_->sizes().long_queries);
  expect_fair([&] { return std::make_shared<Repeated>(search); });
}

TEST_P(Attacks, TwelveClientsThatSendSlowImages) {
  expect_fair([&] {
    auto hogs = std::make_shared<ImageHogs>(attacked_->attackers_channel(), 12);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return hogs;
  });
}

TEST_P(Attacks, FortySlowReaders) {
  const std::string session = attacked_->server().create_session();
  CallMaker maker(attacked_->server(), session);
  const std::string buffer = maker.put(v1::UINT8, {32 << 20}, std::vector<std::uint8_t>(32 << 20, 1));
  expect_fair([&] {
    auto readers = std::make_shared<std::list<SlowReader>>();
    for (int i = 0; i < 40; ++i)
      readers->emplace_back(channel_from("127.0.0.2", attacked_->server().port()), buffer);
    return readers;
  });
}

/// Where one call runs at a time, so that whose turn is next is all that helps the victim.
class AttacksOnOneLane : public Attacks {
 protected:
  void SetUp() override { attacked_ = attacked_cpu(1); }
};

TEST_P(AttacksOnOneLane, SixHundredInteractiveCalls) { expect_fair(calls(600, v1::INTERACTIVE)); }

INSTANTIATE_TEST_SUITE_P(Nightly, Attacks, ::testing::Values("Cpu"));
INSTANTIATE_TEST_SUITE_P(Nightly, AttacksOnOneLane, ::testing::Values("Cpu"));
INSTANTIATE_TEST_SUITE_P(SlowCuda, Attacks, ::testing::Values("Gpu"));

TEST(Principals, AreToldApartByTheirAddresses) {
  const std::unique_ptr<Attacked> attacked = attacked_cpu();
  const Hog hog(attacked->attackers_channel(), 1100, kSizesOfACpu.as_large, v1::BATCH);
  ASSERT_TRUE(eventually([&] { return hog.refused() > 0; })) << "its queue has room for 1024";
  EXPECT_GT(attacked->victim().time(), 0) << "whose queue is another";
}

TEST(Principals, AreRefusedForNoWaitThatASlowCallOfLittleMemoryMakesSeemLong) {
  const std::unique_ptr<Attacked> attacked = attacked_cpu();
  // Little memory and much time; then much memory and little time.
  Drawer slow(attacked->attackers_channel(), "6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e0c", 1 << 23,
              v1::INTERACTIVE);
  EXPECT_GT(slow.time(), 0);
  CallMaker maker(attacked->server(), attacked->server().create_session());
  const CallMaker::Call table = make_build_summed_area_table(maker, 1 << 22);
  std::vector<std::future<grpc::Status>> answers;
  for (int i = 0; i < 16; ++i) {
    answers.push_back(std::async(std::launch::async, [&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      v1::OperationResult result;
      return table(context, result);
    }));
  }
  for (auto& answer : answers) {
    const grpc::Status status = answer.get();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

}  // namespace
}  // namespace cumulus::testing

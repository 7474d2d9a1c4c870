// Mixed traffic of clients that mean well, of which one is killed every few seconds, a log that is rotated,
// and what the daemon's memory, pool, handles, threads and shared regions do meanwhile: nothing. Ten minutes;
// another length, such as 24 hours:
//   CUMULUS_SOAK_SECONDS=86400 build/release/tests/soak_test --gtest_filter='NightlySoak.*'
#include <absl/strings/str_join.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/pipeline.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"
#include "tests/end_to_end/program.h"
#include "tests/support/growth.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/sanitized.h"

namespace cumulus::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsSupersetOf;

/// Where a client that is to be killed finds the daemon.
constexpr const char* kVictimsServer = "CUMULUS_TEST_SOAK_SERVER";

/// One client: sessions, uploads, operations, pipelines, downloads, cancelled calls and uploads, wrong ones;
/// through streams, through rings and by shared arrays.
class Traffic {
 public:
  Traffic(const std::string& address, unsigned seed) : client_(Client::connect(address)), random_(seed) {}

  void run(const std::atomic<bool>& stop) {
    ASSERT_TRUE(client_.ok()) << client_.status();
    while (!stop) {
      work();
      std::this_thread::sleep_for(milliseconds(random_() % 20));
    }
  }
  long calls() const { return calls_; }

 private:
  void work() {
    SessionOptions options;
    options.ttl = absl::Minutes(1);  // a machine that is busy with other work renews late
    const absl::StatusOr<Session> session = client_->create_session(options);
    ASSERT_TRUE(session.ok()) << session.status();
    for (int i = 0; i < 8; ++i) {
      const std::int64_t side = 16 + static_cast<std::int64_t>(random_() % 496);
      const std::vector<float> pixels(static_cast<std::size_t>(side * side), 0.5F);
      const absl::StatusOr<Buffer> image = session->upload(ArrayView(pixels, {side, side}));
      ASSERT_TRUE(image.ok()) << image.status();
      call(*session, *image, pixels, side);
      ++calls_;
    }
  }
  void call(const Session& session, const Buffer& image, const std::vector<float>& pixels,
            std::int64_t side) {
    switch (random_() % 10) {
      case 0:
        EXPECT_TRUE(fetched(session.run(filter_box(image, {.radius = 3}))));
        break;
      case 1:
        EXPECT_TRUE(session.run(build_sampling_table(image)).ok());
        break;
      case 2:
        EXPECT_EQ(session.download<float>(image).value_or(std::vector<float>()), pixels);
        break;
      case 3:  // without a session
        if (side > 256) break;
        EXPECT_TRUE(client_->run(filter_box(ArrayView(pixels, {side, side}), {.radius = 1})).ok());
        break;
      case 4:  // wrong
        EXPECT_FALSE(session.run(filter_box(image, {.radius = -1})).ok());
        break;
      case 5: {
        Pipeline pipeline;
        const auto box = pipeline.add(filter_box(image, {.radius = 2}));
        pipeline.keep(pipeline.add(build_summed_area_table(box["image"]))["sums"]);
        EXPECT_TRUE(session.run(pipeline).ok());
        break;
      }
      case 6:
        move_shared(session);
        break;
      case 7: {  // through a ring
        const std::vector<std::uint8_t> bytes(kLarge, static_cast<std::uint8_t>(random_()));
        const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
        EXPECT_TRUE(buffer.ok() &&
                    session.download<std::uint8_t>(*buffer).value_or(std::vector<std::uint8_t>()) == bytes)
            << buffer.status();
        break;
      }
      case 8: {  // broken off
        const std::vector<std::uint8_t> bytes(kLarge, 1);
        UploadOptions options;
        options.call.cancellation.emplace();
        auto upload = session.upload_async(ArrayView(bytes), options);
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
        options.call.cancellation->cancel();
        (void)upload.get();
        break;
      }
      default: {  // cancelled, perhaps too late
        RunOptions options;
        options.call.cancellation.emplace();
        auto result = session.run_async(build_summed_area_table(image), options);
        options.call.cancellation->cancel();
        (void)result.get();
      }
    }
  }
  static bool fetched(absl::StatusOr<Result> result) { return result.ok() && result->fetch("image").ok(); }
  /// An array in memory that the daemon maps, to it and back.
  static void move_shared(const Session& session) {
    absl::StatusOr<Array> array =
        session.allocate_shared(ElementType::kUint8, {static_cast<std::int64_t>(kLarge)});
    ASSERT_TRUE(array.ok()) << array.status();
    std::memset(array->mutable_bytes().data(), 7, kLarge);
    const absl::StatusOr<Buffer> buffer = session.upload(array->view());
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    const absl::Status back = session.download(*buffer, array->mutable_bytes());
    EXPECT_TRUE(back.ok()) << back;
  }

  static constexpr std::size_t kLarge = std::size_t{5} << 20;  // bytes that go through shared memory

  const absl::StatusOr<Client> client_;
  std::minstd_rand random_;
  std::atomic<long> calls_ = 0;
};

class Soak : public ::testing::Test {
 protected:
  using Watched = std::map<std::string, std::pair<Series, double>>;

  Soak() {
    std::ofstream(folder_ / "config")
        << "logging { file: \"" << (folder_ / "log") << "\" }\n"
        << "devices { cpu_memory_bytes: 268435456 }\n"
        << "limits { default_ttl { seconds: 10 } }\n"  // of clients that are killed
        << "observability { metrics: \"127.0.0.1:" << port_ << "\" }\n";
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{"--config", folder_ / "config"});
  }

  /// What is watched, with what may be more at the end than at the beginning.
  static Watched watched() {
    constexpr double kMebibyte = 1 << 20;
    return {{"memory", {{}, 16 * kMebibyte}},
            {"pool", {{}, 4 * kMebibyte}},
            {"handles", {{}, 8}},
            {"threads", {{}, 6}},
            {"sessions", {{}, 8}},
            {"regions", {{}, 4}},
            {"mappings", {{}, 16}}};
  }
  /// Descriptors of memory that is shared with clients.
  std::size_t regions() const {
    std::size_t count = 0;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(proc() + "/fd", gone)) {
      const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
      count += target.find("cumulus-shared") != std::string::npos ? 1U : 0U;
    }
    return count;
  }
  std::size_t mappings() const {
    const std::string maps = read_file(proc() + "/maps");
    return static_cast<std::size_t>(std::count(maps.begin(), maps.end(), '\n'));
  }
  std::string proc() const { return "/proc/" + std::to_string(daemon_->program().id()); }

  void look(Watched& watched, Clock::time_point start) const {
    const HttpPage page = get_page(port_, "/metrics");
    ASSERT_EQ(page.code, 200);
    const PrometheusText metrics(page.body);
    const double now = std::chrono::duration<double>(Clock::now() - start).count();
    watched.at("memory").first.add(now, metrics.value("process_resident_memory_bytes"));
    watched.at("pool").first.add(
        now, metrics.value("cumulus_device_memory_bytes", {{"device", "cpu"}, {"state", "buffers"}}) +
                 metrics.value("cumulus_device_memory_bytes", {{"device", "cpu"}, {"state", "calls"}}));
    watched.at("handles").first.add(now, metrics.value("process_open_fds"));
    watched.at("threads").first.add(now, metrics.value("process_threads"));
    watched.at("sessions").first.add(now, metrics.value("cumulus_sessions", {{"device", "cpu"}}));
    watched.at("regions").first.add(now, static_cast<double>(regions()));
    watched.at("mappings").first.add(now, static_cast<double>(mappings()));
  }
  /// A client in the middle of its work is killed, once it has worked for a while, and another begins.
  void kill_a_client() {
    if (victim_ != nullptr && Clock::now() < victims_end_) return;
    if (victim_ != nullptr) {
      EXPECT_TRUE(victim_->running()) << victim_->wait().output;
      victim_->send(SIGKILL);
      (void)victim_->wait();
      ++killed_;
    }
    victim_ =
        std::make_unique<Program>("/proc/self/exe", std::vector<std::string>{"--gtest_filter=SoakVictim.*"},
                                  Environment{{kVictimsServer, daemon_->address()}});
    victims_end_ = Clock::now() + milliseconds(1500 + killed_ * 37 % 1000);
  }
  /// As logrotate does, and what was before is removed.
  void rotate_log() {
    if (++looks_ % 20 != 0) return;
    std::filesystem::rename(folder_ / "log", folder_ / "log.1");
    daemon_->program().send(SIGHUP);
  }
  /// Traffic of so many clients for so long, and `meanwhile` before each look.
  Watched soak(
      int clients, seconds time, milliseconds interval, const std::function<void()>& meanwhile = [] {}) {
    std::atomic<bool> stop = false;
    std::vector<std::unique_ptr<Traffic>> traffic;
    std::vector<std::thread> threads;
    for (int i = 0; i < clients; ++i) {
      traffic.push_back(std::make_unique<Traffic>(daemon_->address(), static_cast<unsigned>(i + 1)));
      threads.emplace_back([&stop, each = traffic.back().get()] { each->run(stop); });
    }
    Watched watched = Soak::watched();
    const Clock::time_point start = Clock::now();
    constexpr std::size_t kLooks = 40;  // at least, however slow the machine is
    while ((Clock::now() < start + time || watched.at("memory").first.values.size() < kLooks) &&
           !HasFatalFailure()) {
      std::this_thread::sleep_for(interval);
      meanwhile();
      look(watched, start);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    long calls = 0;
    for (const auto& each : traffic) calls += each->calls();
    std::printf("%ld calls of %d clients\n", calls, clients);
    EXPECT_GT(calls, 0);
    return watched;
  }

  static int free_port() {
    const RawListener listener;
    return listener.port();
  }

  const TemporaryFolder folder_;
  const int port_ = free_port();
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Program> victim_;
  Clock::time_point victims_end_;
  int killed_ = 0;
  int looks_ = 0;
};

/// The length that the environment gives, or else `usual`.
seconds length(seconds usual) {
  const char* const given = std::getenv("CUMULUS_SOAK_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr ? seconds(std::atoi(given)) : usual;
}

class NightlySoak : public Soak {};
TEST_F(NightlySoak, GrowsNothing) {
  const seconds time = length(seconds(600));
  Watched watched = soak(4, time, milliseconds(time) / 600, [this] {
    kill_a_client();
    rotate_log();
  });
  std::printf("%d clients killed\n", killed_);
  victim_.reset();
  if (kSanitized) {  // AddressSanitizer's allocator keeps and maps what it likes
    watched.erase("memory");
    watched.erase("mappings");
  }
  EXPECT_EQ(absl::StrJoin(growing(watched), ", "), "");
  daemon_->program().send(SIGTERM);
  const Ended ended = daemon_->program().wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
}

TEST(SoakVictim, WorksUntilItIsKilled) {
  const char* const address = std::getenv(kVictimsServer);  // NOLINT(concurrency-mt-unsafe)
  if (address == nullptr) GTEST_SKIP() << "runs as the child of another test only";
  const std::atomic<bool> never = false;
  Traffic(address, static_cast<unsigned>(::getpid())).run(never);
}

/// The control of that check: beside the traffic, sessions with a buffer and a connection each that nobody
/// ends.
TEST_F(Soak, IsNoticedWhereSomethingGrows) {
  struct Leak {
    Client client;
    Session session;
    Buffer buffer;
  };
  std::vector<Leak> leaks;
  const std::vector<float> pixels(std::size_t{256} << 10, 1.0F);  // a MiB
  const auto leak = [&] {
    absl::StatusOr<Client> client = Client::connect(daemon_->address());
    ASSERT_TRUE(client.ok()) << client.status();
    absl::StatusOr<Session> session = client->create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    absl::StatusOr<Buffer> buffer = session->upload(ArrayView(pixels, {512, 512}));
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    leaks.push_back({*std::move(client), *std::move(session), *std::move(buffer)});
  };
  const std::vector<std::string> names = growing(soak(1, seconds(4), milliseconds(100), leak));
  EXPECT_THAT(names, IsSupersetOf({"memory", "pool", "handles", "sessions"}));
}

TEST(Growth, IsTheSlopeThatIsClearOfTheNoise) {
  std::minstd_rand random(1);
  Series flat;
  Series rising;
  Series step;  // a cache that fills once
  for (int i = 0; i < 200; ++i) {
    const double noise = static_cast<double>(random() % 100);
    flat.add(i, 1000 + noise);
    rising.add(i, 1000 + noise + i);
    step.add(i, i < 40 ? 0 : 1000 + noise);
  }
  EXPECT_FALSE(grows(trend_of(flat), 10));
  EXPECT_TRUE(grows(trend_of(rising), 10));
  EXPECT_NEAR(trend_of(rising).per_second, 1, 0.2);
  EXPECT_FALSE(grows(trend_of(step), 10));
  EXPECT_FALSE(grows(trend_of(rising), 1000));
  EXPECT_FALSE(grows(trend_of({}), 0));
}

}  // namespace
}  // namespace cumulus::testing

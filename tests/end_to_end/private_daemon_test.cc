// That a job takes its own daemon along, however it ends.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/client.h"
#include "tests/end_to_end/program.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

const std::string kMap = test_data("sunrise.exr").string();

/// The one entry of a folder, once there is one that holds a socket.
fs::path socket_in(const fs::path& folder) {
  for (int i = 0; i < 5000; ++i) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (fs::exists(entry.path() / "socket")) return entry.path() / "socket";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ADD_FAILURE() << "no private daemon began to listen under " << folder;
  return {};
}

std::int64_t folders_in(const fs::path& folder) {
  return std::count_if(fs::directory_iterator(folder), fs::directory_iterator(),
                       [](const fs::directory_entry& entry) { return entry.is_directory(); });
}

/// Waits until so many daemons have a socket under `folder`.
void wait_for_sockets(const fs::path& folder, std::int64_t count) {
  const auto sockets = [&] {
    return std::count_if(
        fs::directory_iterator(folder), fs::directory_iterator(),
        [](const fs::directory_entry& entry) { return fs::exists(entry.path() / "socket"); });
  };
  for (int i = 0; i < 5000 && sockets() < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(sockets(), count);
}

TEST(PrivateDaemon, EndsWhenItsJobIsKilled) {
  const TemporaryFolder temporary;
  Program job(test_program("cumulus"),
              {"--backend", "cpu", "draw-samples", kMap, "-n", "2000000000", "-o", temporary / "samples.npy"},
              {{"TMPDIR", temporary.path().string()}});
  const fs::path socket = socket_in(temporary.path());
  const auto answers = [&] { return Client::connect("unix:" + socket.string()).ok(); };
  // A socket has its name before it listens.
  for (int i = 0; i < 200 && !answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(answers());
  job.send(SIGKILL);
  EXPECT_EQ(job.wait().exit_code, 128 + SIGKILL);
  for (int i = 0; i < 200 && answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(answers());
}

TEST(PrivateDaemon, IsClearedAwayByTheNextJobWhenItsOwnIsKilled) {
  const TemporaryFolder temporary;
  const Environment environment = {{"TMPDIR", temporary.path().string()}};
  fs::create_directory(temporary / "cumulus-of-others");  // without an owner's file: none of ours
  std::vector<std::unique_ptr<Program>> jobs;
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(
        std::make_unique<Program>(test_program("cumulus"),
                                  std::vector<std::string>{"--backend", "cpu", "draw-samples", kMap, "-n",
                                                           "2000000000", "-o", temporary / "s.npy"},
                                  environment));
  }
  wait_for_sockets(temporary.path(), 2);
  jobs.front()->send(SIGKILL);
  jobs.front()->wait();
  EXPECT_EQ(run_cumulus({"--backend", "cpu", "health"}, environment).exit_code, 0);
  EXPECT_EQ(folders_in(temporary.path()), 2);  // of the job that runs, and of others
  jobs.back()->send(SIGINT);
  EXPECT_EQ(jobs.back()->wait().exit_code, 130);
  EXPECT_EQ(folders_in(temporary.path()), 1);
}

TEST(PrivateDaemon, StartsWhileItsJobReads) {
  const TemporaryFolder temporary;
  const TemporaryFolder files;
  const std::string input = files / "map.exr";
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  Program job(test_program("cumulus"),
              {"--backend", "cpu", "blur", input, "--sigma", "2", "-o", files / "blurred.exr"},
              {{"TMPDIR", temporary.path().string()}});
  socket_in(temporary.path());  // before there is anything to read
  std::ofstream(input, std::ios::binary) << std::ifstream(kMap, std::ios::binary).rdbuf();
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

/// A Unix socket's path has 107 bytes at most; folders of batch systems are longer.
TEST(PrivateDaemon, StartsWhereTheTemporaryFolderHasALongName) {
  const TemporaryFolder temporary;
  const std::string deep = temporary / std::string(120, 'x');
  std::filesystem::create_directory(deep);
  const Ended ended = run_cumulus({"--backend", "cpu", "health"}, {{"TMPDIR", deep}});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
}

TEST(PrivateDaemon, IsGoneWhereItsJobFindsNoInput) {
  const TemporaryFolder temporary;
  const Ended ended = run_cumulus(
      {"--backend", "cpu", "blur", temporary / "none.exr", "--sigma", "2", "-o", temporary / "blurred.exr"},
      {{"TMPDIR", temporary.path().string()}});
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_NE(ended.errors.find("there is no file"), std::string::npos) << ended.errors;
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

TEST(PrivateDaemon, LeavesNothingBehindWhenItsJobIsInterrupted) {
  const TemporaryFolder temporary;
  const TemporaryFolder output;
  Program job(test_program("cumulus"),
              {"--backend", "cpu", "draw-samples", kMap, "-n", "2000000000", "-o", output / "samples.npy"},
              {{"TMPDIR", temporary.path().string()}});
  socket_in(temporary.path());
  job.send(SIGINT);
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_EQ(ended.errors, "cumulus: interrupted\n");
  EXPECT_TRUE(fs::is_empty(temporary.path()));
  EXPECT_TRUE(fs::is_empty(output.path()));
}

/// A daemon that has moved 6 MB both ways is asked to stop; how long it takes to end.
std::chrono::duration<double> time_to_end(const std::string& socket) {
  Program daemon(test_program("cumulusd"), {"--listen", socket, "--backend", "cpu", "--lame-duck", "0"});
  absl::StatusOr<Client> client = absl::UnavailableError("not yet");
  for (int i = 0; i < 3000 && !client.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    client = Client::connect(socket);
  }
  EXPECT_TRUE(client.ok()) << client.status();
  if (!client.ok()) return std::chrono::hours(1);
  {
    const absl::StatusOr<Session> session = client->create_session();
    EXPECT_TRUE(session.ok()) << session.status();
    const std::vector<float> values(1'500'000, 1.0F);
    const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(values));
    EXPECT_TRUE(buffer.ok() && session->download(*buffer).ok());
  }
  const auto start = std::chrono::steady_clock::now();
  daemon.send(SIGTERM);
  EXPECT_EQ(daemon.wait().exit_code, 0);
  return std::chrono::steady_clock::now() - start;
}

TEST(NightlyPrivateDaemon, TwoHundredEndAtOnceAfterTransfers) {
  const TemporaryFolder folder;
  std::vector<double> late;
  double slowest = 0;
  for (int i = 0; i < 200; ++i) {
    const double seconds = time_to_end("unix:" + (folder / ("socket" + std::to_string(i)))).count();
    slowest = std::max(slowest, seconds);
    if (seconds > 0.3) late.push_back(seconds);
  }
  RecordProperty("slowest_seconds", std::to_string(slowest));
  EXPECT_TRUE(late.empty()) << ::testing::PrintToString(late);
}

}  // namespace
}  // namespace cumulus::testing

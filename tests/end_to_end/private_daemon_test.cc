// That a job takes its own daemon along, however it ends.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

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

TEST(PrivateDaemon, LeavesNothingBehindWhenItsJobIsInterrupted) {
  const TemporaryFolder temporary;
  const TemporaryFolder output;
  Program job(test_program("cumulus"),
              {"--backend", "cpu", "draw-samples", kMap, "-n", "2000000000", "-o", output / "samples.npy"},
              {{"TMPDIR", temporary.path().string()}});
  socket_in(temporary.path());
  job.send(SIGINT);
  const Ended ended = job.wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.errors, "cumulus: interrupted\n");
  EXPECT_TRUE(fs::is_empty(temporary.path()));
  EXPECT_TRUE(fs::is_empty(output.path()));
}

}  // namespace
}  // namespace cumulus::testing

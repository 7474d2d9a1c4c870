// Ctrl-C in each stage of a command that takes long: it ends with 130 then, and leaves nothing behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "tests/end_to_end/npy_file.h"
#include "tests/end_to_end/program.h"
#include "tests/support/cutting_proxy.h"
#include "tests/support/eventually.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A picture of ones, of `height` x 1024 floats.
void write_ones(const std::string& path, std::size_t height) {
  const std::vector<float> ones(height * 1024, 1.0F);
  const std::string elements(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float));
  std::ofstream(path, std::ios::binary) << npy_file("<f4", std::to_string(height) + ", 1024", elements);
}

class Interruptions : public ::testing::Test {
 protected:
  void begin(std::vector<std::string> server, const std::vector<std::string>& command,
             const fs::path& program = test_program("cumulus")) {
    server.insert(server.end(), command.begin(), command.end());
    job_ = std::make_unique<Program>(program, server, Environment{{"TMPDIR", temporary_.path().string()}});
  }
  /// Whether the command takes SIGINT in its own way by now.
  bool takes_interrupts() const {
    std::ifstream status("/proc/" + std::to_string(job_->id()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) == 0)
        return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
    }
    return false;
  }
  void expect_interrupted() {
    ASSERT_TRUE(eventually([this] { return takes_interrupts(); })) << job_->errors();
    job_->send(SIGINT);
    ASSERT_TRUE(eventually([this] { return !job_->running(); })) << "goes on after an interrupt";
    const Ended ended = job_->wait();
    EXPECT_EQ(ended.exit_code, 130);
    EXPECT_EQ(ended.errors, "cumulus: interrupted\n");
    EXPECT_TRUE(fs::is_empty(temporary_.path()));
    EXPECT_TRUE(fs::is_empty(output_.path()));
  }

  const TemporaryFolder temporary_;  // of a private daemon
  const TemporaryFolder input_;
  const TemporaryFolder output_;
  std::unique_ptr<Program> job_;
};

/// Of a command with a daemon of its own ("Private") and of one with --server ("Named").
class InterruptionsAnywhere : public Interruptions, public ::testing::WithParamInterface<std::string> {
 protected:
  std::vector<std::string> server() {
    if (GetParam() == "Private") return {"--backend", "cpu"};
    daemon_ = std::make_unique<Daemon>();
    return {"--server", daemon_->address()};
  }
  /// Where the daemon is; empty while there is none.
  std::string address() const {
    if (daemon_ != nullptr) return daemon_->address();
    for (const auto& entry : fs::directory_iterator(temporary_.path())) {
      if (fs::exists(entry.path() / "socket")) return "unix:" + (entry.path() / "socket").string();
    }
    return "";
  }
  /// What the daemon's CPU holds for buffers and calls.
  std::size_t reserved() const {
    const std::string where = address();
    if (where.empty()) return 0;
    const absl::StatusOr<Client> client = Client::connect(where);
    if (!client.ok()) return 0;
    const absl::StatusOr<Capabilities> capabilities = client->capabilities();
    return capabilities.ok() ? static_cast<std::size_t>(capabilities->devices.front().reserved_bytes) : 0;
  }

  std::unique_ptr<Daemon> daemon_;
};

TEST_P(InterruptionsAnywhere, EndWhatReadsFromAPipe) {
  const std::string pipe = input_ / "pipe.npy";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  begin(server(), {"box-filter", pipe, "-o", output_ / "x.npy", "--radius", "1"});
  int writer = -1;
  // Once somebody reads there.
  ASSERT_TRUE(eventually([&] { return (writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));
  expect_interrupted();
  close(writer);
}

TEST_P(InterruptionsAnywhere, EndWhatIsBeingComputed) {
  write_ones(input_ / "in.npy", 16384);  // which takes seconds
  begin(server(), {"blur", input_ / "in.npy", "-o", output_ / "x.npy", "--method", "fir", "--sigma", "2000"});
  ASSERT_TRUE(eventually([this] { return reserved() >= 96 * kMiB; })) << "the image alone has 64 MiB";
  expect_interrupted();
}

INSTANTIATE_TEST_SUITE_P(Server, InterruptionsAnywhere, ::testing::Values("Private", "Named"),
                         [](const auto& server) { return server.param; });

TEST_F(Interruptions, EndTheWaitForAServerThatIsNotThere) {
  begin({"--server", "unix:" + (input_ / "socket"), "--wait-for-server", "600"}, {"health"});
  expect_interrupted();
}

TEST_F(Interruptions, EndTheWaitForAManifest) {
  const std::string pipe = input_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string command = "exec '" + test_program("cumulus").string() + "' batch - < '" + pipe + "'";
  begin({"-c", command}, {}, "/bin/sh");
  int writer = -1;
  ASSERT_TRUE(eventually([&] { return (writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }));
  expect_interrupted();
  close(writer);
}

TEST_F(Interruptions, EndTheStartOfADaemonOfItsOwn) {
  fs::copy_file(test_program("cumulus"), input_ / "cumulus");
  std::ofstream(input_ / "cumulusd") << "#!/bin/sh\ntouch '" << (input_ / "begun") << "'\nexec sleep 600\n";
  fs::permissions(input_ / "cumulusd", fs::perms::owner_all);
  begin({}, {"health"}, input_ / "cumulus");
  ASSERT_TRUE(eventually([this] { return fs::exists(input_ / "begun"); }));
  expect_interrupted();
}

/// Between a command and its server, a proxy that carries 8 MiB and then nothing more.
class InterruptedTransfers : public Interruptions {
 protected:
  void expect_interrupted_in_the_midst(const std::vector<std::string>& command) {
    proxy_.hold_after(8 * kMiB);
    begin({"--server", proxy_.address}, command);
    ASSERT_TRUE(eventually([this] { return proxy_.holds(); }));
    expect_interrupted();
  }

  Daemon daemon_{
      std::vector<std::string>{"--shared-memory-socket", "off"}};  // past which a proxy would see nothing
  CuttingProxy proxy_{std::stoi(daemon_.address().substr(daemon_.address().find(':') + 1))};
};

TEST_F(InterruptedTransfers, EndInTheMidstOfADownload) {
  write_ones(input_ / "in.npy", 8);
  expect_interrupted_in_the_midst(
      {"draw-samples", input_ / "in.npy", "-n", "4000000", "-o", output_ / "x.npy"});
}

}  // namespace
}  // namespace cumulus::testing

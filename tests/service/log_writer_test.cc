#include "server/runtime/log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPending = 64 << 10;
const std::string kLine = std::string(127, 'x') + "\n";

/// A writer into a pipe that nobody reads unless the test does.
class LogWriterIntoPipe : public ::testing::Test {
 protected:
  LogWriterIntoPipe() {
    std::signal(SIGPIPE, SIG_IGN);
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    reader_ = ends[0];
    pipe_ = ends[1];
    writer_ = std::make_unique<LogWriter>(pipe_, kPending, [](std::uint64_t count, int /*error*/) {
      return std::to_string(count) + " lost\n";
    });
  }
  ~LogWriterIntoPipe() override { close_reader(); }

  void close_reader() {
    if (reader_ >= 0) ::close(reader_);
    reader_ = -1;
  }
  /// Fills the pipe and then all that may be pending. Nothing is dropped before the pipe is full: of that a
  /// late writer would tell in a line of its own.
  void stall() {
    while (pipe_has_room()) {
      writer_->push(kLine);
      writer_->flush(milliseconds(50));
    }
    while (writer_->dropped() < 100) writer_->push(kLine);
  }
  bool pipe_has_room() const {
    pollfd entry{pipe_, POLLOUT, 0};
    return ::poll(&entry, 1, 0) > 0;
  }
  /// What comes until `last` has come.
  std::string read_until(const std::string& last) const {
    std::string text;
    std::string buffer(4096, '\0');
    while (text.find(last) == std::string::npos) {
      const ssize_t count = ::read(reader_, buffer.data(), buffer.size());
      if (count <= 0) break;
      text.append(buffer, 0, static_cast<std::size_t>(count));
    }
    return text;
  }

  int reader_ = -1;
  int pipe_ = -1;  // the writer's
  std::unique_ptr<LogWriter> writer_;
};

TEST_F(LogWriterIntoPipe, WritesLinesInTheirOrder) {
  for (const char* line : {"one\n", "two\n", "three\n"}) writer_->push(line);
  EXPECT_TRUE(writer_->flush(milliseconds(5000)));
  EXPECT_EQ(read_until("three\n"), "one\ntwo\nthree\n");
  EXPECT_EQ(writer_->dropped(), 0u);
}

TEST_F(LogWriterIntoPipe, AReaderThatHasStoppedHoldsUpNobody) {
  stall();
  std::vector<Clock::duration> times;
  for (int i = 0; i < 2000; ++i) {
    const auto start = Clock::now();
    writer_->push(kLine);
    times.push_back(Clock::now() - start);
  }
  // Not the longest: the machine may take the processor away from this thread.
  std::nth_element(times.begin(), times.end() - 20, times.end());
  EXPECT_LT(times[times.size() - 20], milliseconds(5));
  EXPECT_GE(writer_->dropped(), 2000u);
  const auto start = Clock::now();
  EXPECT_FALSE(writer_->flush(milliseconds(100)));
  writer_.reset();
  EXPECT_LT(Clock::now() - start, milliseconds(2000));
}

TEST_F(LogWriterIntoPipe, WhatWasDroppedIsSaidOnceThereIsRoom) {
  stall();
  const std::string note = std::to_string(writer_->dropped()) + " lost\n";
  std::string text = read_until(note);
  writer_->push("last\n");  // not before: there was no room
  text += read_until("last\n");
  EXPECT_EQ(text.find(" lost\n"), text.rfind(" lost\n")) << "said once";
}

TEST_F(LogWriterIntoPipe, LinesWithoutAReaderAreDropped) {
  close_reader();
  for (int i = 0; i < 10; ++i) writer_->push(kLine);
  EXPECT_TRUE(writer_->flush(milliseconds(5000)));
  EXPECT_EQ(writer_->dropped(), 10u);
}

/// A disk that becomes full in the middle of a line, and has room again.
TEST(LogWriterToAFullDisk, GoesOnWithWholeLinesAndSaysWhatWasMissing) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &files), 0);
  const auto limit = [&](rlim_t bytes) {
    const rlimit most{bytes, files.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &most), 0);
  };
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  const testing::TemporaryFolder folder;
  const std::string path = folder / "log";
  LogWriter writer(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), kPending,
                   [](std::uint64_t count, int error) {
                     return std::to_string(count) + " lost, " + (error == EFBIG ? "full" : "slow") + "\n";
                   });
  limit(10);
  for (const char* line : {"one two\n", "three\n", "four\n"}) writer.push(line);
  EXPECT_TRUE(writer.flush(milliseconds(5000)));
  limit(files.rlim_cur);
  writer.push("five\n");
  EXPECT_TRUE(writer.flush(milliseconds(5000)));
  ::signal(SIGXFSZ, before);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "one two\nth\nfive\n2 lost, full\n");
  EXPECT_EQ(writer.dropped(), 2U);
}

TEST_F(LogWriterIntoPipe, AnotherFileTakesOverFromAStalledOne) {
  stall();
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  writer_->switch_to(ends[1]);
  close_reader();  // not before: what waits would be lost into a pipe without a reader
  reader_ = ends[0];
  EXPECT_THAT(read_until(" lost\n"), HasSubstr(kLine));
}

TEST_F(LogWriterIntoPipe, ALineLongerThanThePipeComesWhole) {
  const std::string line = std::string(kPending - 1, 'y') + "\n";
  writer_->push(line);
  EXPECT_EQ(read_until("\n"), line);
}

}  // namespace
}  // namespace cumulus::server

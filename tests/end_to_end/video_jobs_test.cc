// Tables of a video's frames: a file each, or the layers of one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/end_to_end/image_jobs.h"
#include "tests/end_to_end/json.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kNames = {"f1", "f2", "f3"};

class VideoJobs : public ServedJobs {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "frames");
    for (std::size_t frame = 0; frame < kNames.size(); ++frame) write_frame(kNames[frame], 16, frame + 1);
  }

  std::string frame(const std::string& name) const { return folder_ / ("frames/" + name + ".exr"); }
  std::string in(const std::string& name) const { return folder_ / name; }

  /// Of a frame whose weights no other has; black of `seed` 0.
  void write_frame(const std::string& name, int width, std::size_t seed) const {
    Picture picture{width, 8, 1, OIIO::TypeDesc::FLOAT, {}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(8 * width); ++i)
      picture.pixels.push_back(static_cast<float>(seed * (1 + i * (seed + 2) % 13)));
    write_picture(frame(name), picture);
  }

  std::string table_of(const std::string& name) const {
    succeed({"sampling-table", frame(name), "-o", in("alone.cst"), "--projection", "plane"});
    return read_file(in("alone.cst"));
  }

  /// Of some points drawn from `table`.
  std::string samples_of(const std::string& table, int layer) const {
    succeed({"draw-samples", table, "-n", "200", "--layer", std::to_string(layer), "-o", in("drawn.npy")});
    return read_file(in("drawn.npy"));
  }
};

TEST_F(VideoJobs, MakeATableOfEachFrame) {
  const Ended ended = run({"--json", "video-tables", folder_ / "frames/*.exr", "-o", in("tables"),
                           "--projection", "plane", "--frames-at-once", "2"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("frames"), 3);
  for (const char* stage : {"read", "upload", "build", "download", "write"})
    EXPECT_GT(Json(ended.output).number("seconds_of_all_frames." + std::string(stage)), 0) << stage;
  for (const std::string& name : kNames)
    EXPECT_EQ(read_file(in("tables/" + name + ".cst")), table_of(name)) << name;
}

TEST_F(VideoJobs, NameTheFrameThatIsRefused) {
  write_frame("f2", 16, 0);
  fail({"video-tables", folder_ / "frames/*.exr", "-o", in("tables")},
       frame("f2") + ": every weight is zero");
  fail({"sampling-table", frame("f1"), frame("f2"), "-o", in("video.cst")},
       frame("f2") + ": every weight is zero");
  fs::create_directory(folder_ / "others");
  fs::copy_file(frame("f1"), in("others/f1.exr"));
  fail({"video-tables", frame("f1"), in("others/f1.exr"), "-o", in("twice")}, "two frames are called f1");
  EXPECT_FALSE(fs::exists(in("twice")));
}

TEST_F(VideoJobs, FramesOfLayersMayBeNamedByWildcards) {
  const Ended ended = run({"--json", "sampling-table", folder_ / "frames/*.exr", "-o", in("video.cst")});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("layers"), 3);
}

TEST_F(VideoJobs, MakeOneTableWithALayerOfEachFrame) {
  const Ended ended = run({"--json", "sampling-table", frame("f1"), frame("f2"), frame("f3"), "-o",
                           in("video.cst"), "--projection", "plane"});
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_EQ(Json(ended.output).number("layers"), 3);
  for (std::size_t layer = 0; layer < kNames.size(); ++layer) {
    table_of(kNames[layer]);
    EXPECT_EQ(samples_of(in("video.cst"), static_cast<int>(layer)), samples_of(in("alone.cst"), 0)) << layer;
  }
  EXPECT_NE(samples_of(in("video.cst"), 0), samples_of(in("video.cst"), 1));
  write_frame("f2", 24, 2);
  fail({"sampling-table", frame("f1"), frame("f2"), "-o", in("video.cst")},
       "f2.exr has the shape [8, 24, 1] of float32, and ");
}

class NightlyVideoJobs : public VideoJobs {};

/// The first of the pipes that somebody reads, which is taken out; -1 where nobody does until it is `over`.
/// Not the first of all: of two that read, the later frame's may come first.
int open_for_reader(std::list<std::string>& pipes, const std::atomic<bool>& over) {
  while (!over) {
    for (auto pipe = pipes.begin(); pipe != pipes.end(); ++pipe) {
      const int opened = ::open(pipe->c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (opened < 0) continue;
      pipes.erase(pipe);
      ::fcntl(opened, F_SETFL, 0);
      return opened;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return -1;
}

/// Writes `file` into each of the pipes, one after the other, as a disk that takes `pace` for a frame; how
/// long it has been at work, without waiting for readers.
double deliver(std::list<std::string> pipes, const std::string& file, std::chrono::milliseconds pace,
               const std::atomic<bool>& over) {
  std::chrono::duration<double> at_work(0);
  while (!pipes.empty()) {
    const int frame = open_for_reader(pipes, over);
    if (frame < 0) break;
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(pace);
    std::string_view left = file;
    for (ssize_t count = 0; (count = ::write(frame, left.data(), left.size())) > 0;)
      left.remove_prefix(static_cast<std::size_t>(count));
    ::close(frame);
    at_work += std::chrono::steady_clock::now() - start;
  }
  return at_work.count();
}

/// Frames come from a disk so slow that everything else fits into its pauses, if it is done meanwhile: one
/// after the other, they would come to about two thirds of its pace.
TEST_F(NightlyVideoJobs, KeepPaceWithTheSlowestStageAlone) {
  constexpr std::size_t kFrames = 40;
  fs::create_directory(folder_ / "slow");
  std::list<std::string> pipes;
  for (std::size_t frame = 0; frame < kFrames; ++frame) {
    pipes.push_back(in("slow/" + std::to_string(100 + frame) + ".exr"));
    ASSERT_EQ(mkfifo(pipes.back().c_str(), 0600), 0);
  }
  double alone = 0;
  std::atomic<bool> over = false;
  std::signal(SIGPIPE, SIG_IGN);
  std::thread disk([&] {
    alone = deliver(pipes, read_file(test_data("sunrise.exr").string()), std::chrono::milliseconds(80), over);
  });
  const Ended ended = run({"--json", "video-tables", folder_ / "slow/*.exr", "-o", in("tables")});
  over = true;
  disk.join();
  std::signal(SIGPIPE, SIG_DFL);
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_GE(Json(ended.output).number("frames_per_second"), 0.9 * kFrames / alone);
}

}  // namespace
}  // namespace cumulus::testing

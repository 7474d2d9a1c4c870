// cumulus_video_bench: how many frames a second of half-float RGB video a daemon turns into sampling tables,
// with several frames in flight; next to uploads alone, to one frame after the other, and to a bare gRPC
// stream of as many bytes, which is what loopback gives. All take turns in one run. Exits with 1 where a
// table that was built in flight is not the one that the same frame gives alone.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/service/bare_stream.h"
#include "bench/service/turns.h"
#include "cumulus/client.h"
#include "cumulus/sampling_table.h"
#include "server/runtime/transfer/transfer_service.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string server = "127.0.0.1:50651";
  std::int64_t width = 4096;
  std::int64_t height = 2048;
  int frames = 24;
  int in_flight = 3;
  int rounds = 3;
};

/// A frame of finite half floats that are not negative.
class Frame {
 public:
  Frame(const Arguments& arguments, unsigned seed)
      : shape_{arguments.height, arguments.width, 3},
        halves_(static_cast<std::size_t>(arguments.height * arguments.width * 3)) {
    std::mt19937 random(seed);
    for (std::uint16_t& half : halves_) half = static_cast<std::uint16_t>(random() % 0x7C00u);
  }
  ArrayView view() const { return {ElementType::kFloat16, std::as_bytes(std::span(halves_)), shape_}; }
  std::size_t bytes() const { return halves_.size() * sizeof(std::uint16_t); }

 private:
  Shape shape_;
  std::vector<std::uint16_t> halves_;
};

/// The table of a frame. It stays on the server; it and the frame are released at the end of the call's life.
Result build(const Session& session, const Frame& frame) {
  const Buffer uploaded = value_or_throw(session.upload(frame.view()), "upload");
  return value_or_throw(session.run(build_sampling_table(uploaded)), "build");
}

/// Calls `one(lane)` for every frame; `lanes` threads share them.
void for_frames(int frames, int lanes, const std::function<void(std::size_t)>& one) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(lanes));
  std::vector<std::thread> threads;
  for (std::size_t lane = 0; lane < failures.size(); ++lane) {
    threads.emplace_back([&, lane] {
      try {
        for (auto frame = static_cast<int>(lane); frame < frames; frame += lanes) one(lane);
      } catch (...) {
        failures[lane] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

struct Subject {
  const char* name;
  std::function<void()> run;
  std::vector<double> frames_a_second = {};

  double median() const {
    std::vector<double> sorted = frames_a_second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

int measure(const Arguments& arguments) {
  std::vector<Frame> frames;
  for (int lane = 0; lane < arguments.in_flight; ++lane) frames.emplace_back(arguments, lane + 1);
  const Client client = value_or_throw(Client::connect(arguments.server), "connect");
  const Session session = value_or_throw(client.create_session(), "session");
  BareServer bare_server(server::kMaxChunkBytes);
  std::vector<BareClient> bare;
  for (int lane = 0; lane < arguments.in_flight; ++lane)
    bare.emplace_back(bare_server.address(), server::kMaxChunkBytes);

  const int lanes = arguments.in_flight;
  std::vector<Subject> subjects = {
      {"bare stream",
       [&] {
         for_frames(arguments.frames, lanes,
                    [&](std::size_t lane) { bare[lane].upload(frames[lane].bytes()); });
       }},
      {"uploads alone",
       [&] {
         for_frames(arguments.frames, lanes,
                    [&](std::size_t lane) { value_or_throw(session.upload(frames[lane].view()), "upload"); });
       }},
      {"tables, in flight",
       [&] { for_frames(arguments.frames, lanes, [&](std::size_t lane) { build(session, frames[lane]); }); }},
      {"tables, one by one",
       [&] { for_frames(arguments.frames, 1, [&](std::size_t lane) { build(session, frames[lane]); }); }},
  };
  for (int round = -1; round < arguments.rounds; ++round) {  // the first is not counted
    for (Subject& subject : subjects) {
      const Clock::time_point start = Clock::now();
      subject.run();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round >= 0) subject.frames_a_second.push_back(arguments.frames / seconds);
    }
  }

  const double megabytes = static_cast<double>(frames[0].bytes()) / 1e6;
  std::printf("%lld x %lld half RGB frames of %.1f MB, %d in flight, %d a round, %d rounds, medians; %s\n",
              static_cast<long long>(arguments.width), static_cast<long long>(arguments.height), megabytes,
              lanes, arguments.frames, arguments.rounds, session.device().c_str());
  for (const Subject& subject : subjects) {
    std::printf("%-20s %7.2f frames/s %7.2f GB/s  %4.2f of the bare stream\n", subject.name, subject.median(),
                subject.median() * megabytes / 1e3, subject.median() / subjects[0].median());
  }

  std::vector<Array> tables(frames.size());
  for_frames(lanes, lanes, [&](std::size_t lane) {
    const Result built = build(session, frames[lane]);
    tables[lane] = value_or_throw(session.download(*built.buffer("table")), "download");
  });
  bool same = true;
  for (std::size_t lane = 0; lane < frames.size(); ++lane) {
    const Result alone = build(session, frames[lane]);
    const Array table = value_or_throw(session.download(*alone.buffer("table")), "download");
    same = same && std::ranges::equal(table.bytes(), tables[lane].bytes());
  }
  std::printf("tables built in flight are %s those built alone\n", same ? "exactly" : "NOT");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures the sampling tables of video frames through a daemon, in one interleaved run.",
               "cumulus_video_bench"};
  cumulus::bench::Arguments arguments;
  app.add_option("--server", arguments.server, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--width", arguments.width)->check(CLI::Range(1, 32768))->capture_default_str();
  app.add_option("--height", arguments.height)->check(CLI::Range(1, 32768))->capture_default_str();
  app.add_option("--frames", arguments.frames, "Frames a round")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--in-flight", arguments.in_flight, "Frames at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds that count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return cumulus::bench::measure(arguments);
  } catch (const std::exception& error) {
    std::cerr << "cumulus_video_bench: " << error.what() << "\n";
    return 1;
  }
}

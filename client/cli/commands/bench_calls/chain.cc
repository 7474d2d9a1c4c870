// cumulus_chain_bench: five small operations in one call, next to five calls. A map is blurred; a sampling
// table of the blurred map is built and drawn from; the blurred map is box-filtered, and summed. Both leave
// the samples and the sums on the server. A box filter alone shows what one call costs besides its kernels.
// All take turns in one run. Exits with 1 where the bytes of the two differ.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/pipeline.h"
#include "cumulus/recursive_filter.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string server = "127.0.0.1:50651";
  std::int64_t width = 256;
  std::int64_t height = 128;
  std::int64_t samples = 1024;
  int rounds = 500;
};

template <class T>
T value_or_throw(absl::StatusOr<T> result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.status().ToString());
  return *std::move(result);
}

/// What both leave, and how long their kernels took.
struct Kept {
  Buffer samples;
  Buffer sums;
  double compute_seconds;
};

class Subjects {
 public:
  Subjects(const Session& session, const Buffer& map, std::int64_t samples)
      : session_(session), map_(map), samples_(samples) {}

  Kept one_call() const {
    Pipeline pipeline;
    const auto blurred = pipeline.add(blur());
    const auto table = pipeline.add(build_sampling_table(blurred["image"]));
    const auto drawn = pipeline.add(draw_samples(table["table"], {.count = samples_}));
    const auto boxed = pipeline.add(filter_box(blurred["image"], {.radius = 4}));
    const auto summed = pipeline.add(build_summed_area_table(boxed["image"]));
    pipeline.keep(drawn["position"]);
    pipeline.keep(summed["sums"]);
    Result result = run(pipeline);
    const double seconds = absl::ToDoubleSeconds(result.timings().compute);
    return {take(result, "position"), take(result, "sums"), seconds};
  }
  Kept five_calls() const {
    const Result blurred = run(blur());
    const Buffer& image = *blurred.buffer("image");
    const Result table = run(build_sampling_table(image));
    Result drawn = run(draw_samples(*table.buffer("table"), {.count = samples_}));
    const Result boxed = run(filter_box(image, {.radius = 4}));
    Result summed = run(build_summed_area_table(*boxed.buffer("image")));
    double seconds = 0;
    for (const Result* result : {&blurred, &table, &std::as_const(drawn), &boxed, &std::as_const(summed)})
      seconds += absl::ToDoubleSeconds(result->timings().compute);
    return {take(drawn, "position"), take(summed, "sums"), seconds};
  }
  double box_filter() const {
    return absl::ToDoubleSeconds(run(filter_box(map_, {.radius = 4})).timings().compute);
  }

 private:
  Operation blur() const {
    return apply_recursive_filter(map_,
                                  {.y = AxisKernel{GaussianKernel{3}}, .x = AxisKernel{GaussianKernel{3}}});
  }
  Result run(const Operation& operation) const { return value_or_throw(session_.run(operation), "run"); }
  static Buffer take(Result& result, const char* name) {
    return value_or_throw(result.take_buffer(name), name);
  }

  const Session& session_;
  const Buffer& map_;
  std::int64_t samples_;
};

double percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

bool same(const Session& session, const Buffer& one, const Buffer& other) {
  const Array first = value_or_throw(session.download(one), "download");
  const Array second = value_or_throw(session.download(other), "download");
  return std::ranges::equal(first.bytes(), second.bytes());
}

int measure(const Arguments& arguments) {
  const Client client = value_or_throw(Client::connect(arguments.server), "connect");
  const Session session = value_or_throw(client.create_session(), "session");
  std::vector<float> texels(static_cast<std::size_t>(arguments.width * arguments.height));
  std::mt19937 random(1);
  for (float& texel : texels) texel = static_cast<float>(random() % 4096) / 4096;
  const Buffer map =
      value_or_throw(session.upload(ArrayView(texels, {arguments.height, arguments.width})), "upload");
  const Subjects subjects(session, map, arguments.samples);

  struct Subject {
    const char* name;
    std::function<double()> run;  // the seconds of its kernels
    std::vector<double> seconds = {};
    std::vector<double> compute = {};
  };
  Subject all[] = {{"one call", [&] { return subjects.one_call().compute_seconds; }},
                   {"five calls", [&] { return subjects.five_calls().compute_seconds; }},
                   {"box filter", [&] { return subjects.box_filter(); }}};
  const int warm_ups = arguments.rounds / 10 + 1;
  for (int round = -warm_ups; round < arguments.rounds; ++round) {
    for (Subject& subject : all) {
      const Clock::time_point start = Clock::now();
      const double compute = subject.run();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round < 0) continue;
      subject.seconds.push_back(seconds);
      subject.compute.push_back(compute);
    }
  }

  std::printf("five operations on %lld x %lld float32, %lld samples, %d rounds; %s\n",
              static_cast<long long>(arguments.height), static_cast<long long>(arguments.width),
              static_cast<long long>(arguments.samples), arguments.rounds, session.device().c_str());
  for (const Subject& subject : all) {
    std::printf("%-12s p50 %8.1f us  p90 %8.1f us  of which kernels, p50, %8.1f us\n", subject.name,
                percentile(subject.seconds, 0.5) * 1e6, percentile(subject.seconds, 0.9) * 1e6,
                percentile(subject.compute, 0.5) * 1e6);
  }
  const Kept one = subjects.one_call();
  const Kept five = subjects.five_calls();
  const bool equal = same(session, one.samples, five.samples) && same(session, one.sums, five.sums);
  std::printf("the results are %sthe same bytes\n", equal ? "" : "NOT ");
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures five operations in one call next to five calls.", "cumulus_chain_bench"};
  cumulus::bench::Arguments arguments;
  app.add_option("--server", arguments.server, "HOST:PORT or unix:PATH")->capture_default_str();
  app.add_option("--width", arguments.width)->check(CLI::Range(1, 32768))->capture_default_str();
  app.add_option("--height", arguments.height)->check(CLI::Range(1, 32768))->capture_default_str();
  app.add_option("--samples", arguments.samples)->check(CLI::Range(1, 1 << 24))->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds that count")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return cumulus::bench::measure(arguments);
  } catch (const std::exception& error) {
    std::cerr << "cumulus_chain_bench: " << error.what() << "\n";
    return 1;
  }
}

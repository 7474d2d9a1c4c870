// cumulus_bench: how fast each operation is on each backend, next to a copy of the same bytes, and
// whether its result is right. Exits with 1 if any is not.
#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>
#include <optional>

#include "bench/harness/bench.h"
#include "bench/harness/commit.h"
#include "bench/harness/operations.h"
#include "bench/harness/timing.h"

namespace cumulus::bench {
namespace {

struct Arguments {
  Options options;
  std::string backend;  // empty: all that there are
  std::string json;
};

/// Both executors, as far as wanted and present.
struct Backends {
  std::optional<CpuExecutor> cpu;
  std::unique_ptr<CudaDevice> device;
  std::optional<CudaExecutor> cuda;
};

std::string now() {
  const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char text[32];
  std::tm utc{};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&time, &utc));
  return text;
}

Backends open_backends(const std::string& wanted) {
  Backends backends;
  if (wanted != "cuda") backends.cpu.emplace();
  if (wanted == "cpu") return backends;
  if (cuda_device_count() > 0) {
    backends.device = std::make_unique<CudaDevice>(0);
    backends.cuda.emplace(*backends.device);
  } else if (wanted == "cuda") {
    throw std::runtime_error("--backend cuda: " + cuda_unavailable_reason());
  }
  return backends;
}

int measure(const Arguments& arguments, const std::string& command) {
  Backends backends = open_backends(arguments.backend);
  Setting setting{kCommit, now(), command, {}};
  if (backends.cpu) setting.devices.push_back(describe(*backends.cpu));
  if (backends.cuda) setting.devices.push_back(describe(*backends.cuda));

  Report report(std::cout);
  if (!arguments.json.empty()) report.write_to(arguments.json, setting);
  report.print_setting(setting);
  if (backends.cpu) {
    Runner<CpuExecutor> runner(*backends.cpu, arguments.options, report);
    bench_operations(runner);
  }
  if (backends.cuda) {
    Runner<CudaExecutor> runner(*backends.cuda, arguments.options, report);
    bench_operations(runner);
  }
  return report.all_verified() ? 0 : 1;
}

std::string joined(int count, char** words) {
  std::string text = "cumulus_bench";
  for (int i = 1; i < count; ++i) text += std::string(" ") + words[i];
  return text;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app(
      "Measures every operation of Cumulus, next to a copy of as many bytes, and checks its results.");
  cumulus::bench::Arguments arguments;
  app.add_option("--backend", arguments.backend, "cpu or cuda; without it, both where there is a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--filter", arguments.options.filters,
                 "measure only what has this, or one of these, in its name; with $, at its end");
  app.add_flag("--quick", arguments.options.quick, "small sizes, few samples: shows that everything runs");
  app.add_option("--cloud", arguments.options.clouds, "points (.ply, .npy, .npz) to build KD-trees of too");
  app.add_option("--map", arguments.options.maps,
                 "environment maps (images, or .npy of float32 or uint8) to build sampling tables of too");
  app.add_option("--picture", arguments.options.pictures,
                 "pictures (images, or .npy) to encode as runs and decode too");
  app.add_option("--json", arguments.json, "write the rows to this file too");
  CLI11_PARSE(app, argc, argv);
  try {
    return cumulus::bench::measure(arguments, cumulus::bench::joined(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "cumulus_bench: " << error.what() << '\n';
    return 1;
  }
}

// cumulus_notice_bench: how long after a kernel's end the daemon's device and queue go on with its call.
// Calls of one kernel each go through them, as the daemon's do, while another thread reads all the time what
// the kernel writes at its end. Beside it, a thread that asks for the kernel's end all the time and does
// nothing else.
#include <absl/time/clock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/service/timed_kernel.h"
#include "bench/service/turns.h"
#include "server/runtime/device_queue.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

/// Says when the kernel of a number has ended, by a thread that never sleeps.
class Observer {
 public:
  explicit Observer(const TimedKernels& kernels) : kernels_(kernels), thread_([this] { run(); }) {}
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  ~Observer() {
    stopping_ = true;
    thread_.join();
  }

  Clock::time_point end_of(std::uint32_t number) const {
    while (seen_ != number) std::this_thread::yield();
    return Clock::time_point(Clock::duration(when_));
  }

 private:
  void run() {
    std::uint32_t last = kernels_.ended();
    while (!stopping_) {
      const std::uint32_t ended = kernels_.ended();
      if (ended == last) continue;
      when_ = Clock::now().time_since_epoch().count();
      seen_ = last = ended;
    }
  }

  const TimedKernels& kernels_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint32_t> seen_ = 0;
  std::atomic<Clock::rep> when_ = 0;
  std::thread thread_;
};

/// A call of one kernel, which notes when it goes on.
class KernelCall final : public server::Job {
 public:
  /// `cost_seconds`: by which the queue knows a call that came before.
  KernelCall(TimedKernels& kernels, microseconds time, std::uint32_t number, double cost_seconds)
      : kernels_(kernels), time_(time), number_(number), cost_seconds_(cost_seconds) {}

  absl::Status reserve() override { return absl::OkStatus(); }
  void submit(server::Lane& lane) noexcept override {
    auto& executor = std::get<CudaExecutor>(lane.executor());
    executor.bind_thread();
    kernels_.launch(executor.stream(), time_, number_);
  }
  bool finish(server::Lane& /*lane*/, const absl::Status& /*device*/) noexcept override {
    ended_.set_value(Clock::now());
    return true;
  }
  void abandon(const absl::Status& why) noexcept override {
    std::fprintf(stderr, "a call was not run: %s\n", std::string(why.message()).c_str());
    ended_.set_value({});
  }
  server::JobClass job_class() const override { return server::JobClass::kInteractive; }
  const server::Principal& principal() const override { return principal_; }
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  std::string_view operation() const override { return "KernelCall"; }
  double cost_seconds() const override { return cost_seconds_; }
  bool succeeded() const override { return true; }
  bool requested() const override { return false; }

  Clock::time_point went_on() { return ended_.get_future().get(); }

 private:
  TimedKernels& kernels_;
  const microseconds time_;
  const std::uint32_t number_;
  const double cost_seconds_;
  const server::Principal principal_{"bench", {}};
  std::promise<Clock::time_point> ended_;
};

/// Runs a kernel of this time and number to its end: when that was noticed.
using Run = std::function<Clock::time_point(microseconds time, std::uint32_t number)>;

struct Notices {
  std::vector<double> microseconds;  // from the kernels' ends, sorted
  double processors;                 // in use meanwhile, but for the observer's
};

Notices notices(const Run& run, const Observer& observer, microseconds time, int calls,
                std::uint32_t& number) {
  constexpr absl::Duration kBetween = absl::Milliseconds(1);
  constexpr int kWarmUp = 3;
  Notices taken;
  std::clock_t used = 0;
  Clock::duration lasted{};
  for (int i = -kWarmUp; i < calls; ++i) {
    const std::clock_t used_before = std::clock();
    const Clock::time_point start = Clock::now();
    const Clock::time_point noticed = run(time, ++number);
    lasted += noticed - start;
    used += std::clock() - used_before;
    const auto late = noticed - observer.end_of(number);
    if (i >= 0) taken.microseconds.push_back(std::chrono::duration<double, std::micro>(late).count());
    absl::SleepFor(kBetween);
  }
  std::sort(taken.microseconds.begin(), taken.microseconds.end());
  taken.processors =
      static_cast<double>(used) / CLOCKS_PER_SEC / std::chrono::duration<double>(lasted).count() - 1;
  return taken;
}

int measure(const TransferArguments& arguments) {
  const auto device = server::make_gpu_device({.budget_bytes = 64 << 20, .landing_bytes = 1 << 16});
  server::DeviceQueue queue(*device);
  TimedKernels kernels;
  const Observer observer(kernels);
  const auto run_by_queue = [&](microseconds time, std::uint32_t number, double cost_seconds) {
    const auto call = std::make_shared<KernelCall>(kernels, time, number, cost_seconds);
    const absl::Status queued = queue.push(call, server::DeviceQueue::Starts::kCaller);
    if (!queued.ok()) throw std::runtime_error(std::string(queued.message()));
    return call->went_on();
  };
  const auto seconds = [](microseconds time) { return std::chrono::duration<double>(time).count(); };
  const Run daemon = [&](microseconds time, std::uint32_t number) {
    return run_by_queue(time, number, seconds(time));
  };
  // Each has a prediction of its own.
  const Run first_time = [&](microseconds time, std::uint32_t number) {
    return run_by_queue(time, number, seconds(time) * (1 + number * 1e-6));
  };
  CudaDevice other(0);
  const CudaExecutor executor(other);
  CudaEvent end;
  const Run bare = [&](microseconds time, std::uint32_t number) {
    executor.bind_thread();
    kernels.launch(executor.stream(), time, number);
    end.record(executor.stream());
    while (!end.reached()) continue;
    return Clock::now();
  };
  std::uint32_t number = 0;
  std::vector<std::string> rows;
  for (const int time : {20, 100, 400, 2000, 20000}) {
    for (const auto& [who, run] :
         {std::pair("the daemon's queue", &daemon), std::pair("the queue, new calls", &first_time),
          std::pair("asking", &bare)}) {
      const Notices taken = notices(*run, observer, microseconds(time), arguments.rounds, number);
      const std::size_t calls = taken.microseconds.size();
      const double p50 = taken.microseconds[calls / 2];
      const double p99 = taken.microseconds[calls * 99 / 100];
      std::printf("kernel of %5d us, %-20s p50 %6.1f us, p99 %6.1f us, %.2f processors\n", time, who, p50,
                  p99, taken.processors);
      rows.push_back(json_field("kernel_microseconds", time) + ", " + json_field("noticed_by", who) + ", " +
                     json_field("calls", static_cast<double>(calls)) + ", " +
                     json_field("p50_microseconds", p50) + ", " + json_field("p99_microseconds", p99) + ", " +
                     json_field("processors", taken.processors));
    }
  }
  write_rows(arguments, json_field("device", "cuda: " + device->model()), rows);
  return 0;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app("How long after a kernel's end the daemon goes on with its call");
  cumulus::bench::TransferArguments arguments;
  arguments.rounds = 200;
  return cumulus::bench::run_program(app, argc, argv, arguments,
                                     [&] { return cumulus::bench::measure(arguments); });
}

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "bench/harness/timing.h"
#include "kernels/core/parallel.h"

namespace cumulus::bench {
namespace {

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

double time_runs(CpuExecutor& /*executor*/, int count, const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void copy(CpuExecutor& executor, HostSpan<const std::byte> from, HostSpan<std::byte> to) {
  constexpr std::int64_t kPiece = 256 * 1024;
  parallel_ranges(
      executor, static_cast<std::int64_t>(from.size()), kPiece, [&](std::int64_t first, std::int64_t end) {
        std::memcpy(to.data() + first, from.data() + first, static_cast<std::size_t>(end - first));
      });
}

bool equal_bytes(CpuExecutor& /*executor*/, HostSpan<const std::byte> a, HostSpan<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string describe(const CpuExecutor& executor) {
  return "cpu: " + cpu_model() + ", " + std::to_string(executor.threads()) + " threads";
}

}  // namespace cumulus::bench

#include "kernels/core/cpu_executor.h"

#include <oneapi/tbb/info.h>

#include <cassert>
#include <cstring>

#include "kernels/core/parallel.h"

namespace cumulus {
namespace {

int thread_count(int wanted) {
#if defined(__SANITIZE_THREAD__)
  // oneTBB's library is not instrumented, so that every hand-over between its threads would look like a race.
  (void)wanted;
  return 1;
#else
  return wanted > 0 ? wanted : oneapi::tbb::info::default_concurrency();
#endif
}

void copy_bytes(HostSpan<const std::byte> from, HostSpan<std::byte> to) {
  assert(from.size() == to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

CpuExecutor::CpuExecutor(int threads)
    : threads_(thread_count(threads)), arena_(std::make_unique<oneapi::tbb::task_arena>(threads_)) {}

void CpuExecutor::reserve_scratch(std::size_t bytes) {
  release_scratch();
  if (bytes > 0) scratch_.begin(allocate_host(bytes), bytes);
}

void CpuExecutor::upload(HostSpan<const std::byte> from, HostSpan<std::byte> to) { copy_bytes(from, to); }

void CpuExecutor::download(HostSpan<const std::byte> from, HostSpan<std::byte> to) { copy_bytes(from, to); }

void CpuExecutor::copy(HostSpan<const std::byte> from, HostSpan<std::byte> to) {
  constexpr std::int64_t kGrainBytes = std::int64_t{1} << 20;
  parallel_ranges(*this, static_cast<std::int64_t>(from.size()), kGrainBytes,
                  [&](std::int64_t first, std::int64_t end) {
                    const auto begin = static_cast<std::size_t>(first);
                    const auto bytes = static_cast<std::size_t>(end - first);
                    copy_bytes(from.subspan(begin, bytes), to.subspan(begin, bytes));
                  });
}

}  // namespace cumulus

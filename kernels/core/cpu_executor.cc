#include "kernels/core/cpu_executor.h"

#include <oneapi/tbb/info.h>

#include <cassert>
#include <cstring>

namespace cumulus {
namespace {

void copy_bytes(HostSpan<const std::byte> from, HostSpan<std::byte> to) {
  assert(from.size() == to.size());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

CpuExecutor::CpuExecutor(int threads)
    : threads_(threads > 0 ? threads : oneapi::tbb::info::default_concurrency()),
      arena_(std::make_unique<oneapi::tbb::task_arena>(threads_)) {}

void CpuExecutor::reserve_scratch(std::size_t bytes) {
  release_scratch();
  if (bytes > 0) scratch_.begin(allocate_host(bytes), bytes);
}

void CpuExecutor::upload(HostSpan<const std::byte> from, HostSpan<std::byte> to) { copy_bytes(from, to); }

void CpuExecutor::download(HostSpan<const std::byte> from, HostSpan<std::byte> to) { copy_bytes(from, to); }

}  // namespace cumulus

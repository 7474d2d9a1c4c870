#pragma once

#include <oneapi/tbb/task_arena.h>

#include <cstddef>
#include <memory>

#include "kernels/core/device_numbers.h"
#include "kernels/core/interrupt.h"
#include "kernels/core/memory.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"

namespace cumulus {

/// Runs operations on the host's cores. Calls return when the work is done. One call at a time;
/// several executors may share the machine.
class CpuExecutor {
 public:
  static constexpr Space kSpace = Space::kHost;

  /// `threads` 0: all cores.
  explicit CpuExecutor(int threads = 0);

  int threads() const { return threads_; }
  /// Of no GPU: no method on the CPU asks for them.
  DeviceNumbers numbers() const { return {}; }

  /// Runs `body` inside this executor's arena: oneTBB algorithms in it use `threads()` threads.
  template <class Body>
  auto run(Body&& body) {
    return arena_->execute(std::forward<Body>(body));
  }

  /// Begins a call whose scratch memory is at most `bytes`; what the call before took is gone.
  void reserve_scratch(std::size_t bytes);
  /// Gives the scratch memory back.
  void release_scratch() { scratch_.begin({}, 0); }
  /// Begins a call on the scratch memory of the call before, which is as large.
  void reuse_scratch() { scratch_.rewind(); }
  template <class T>
  HostSpan<T> scratch(std::size_t count) {
    return scratch_.take<T>(count);
  }
  const ScratchArena<Space::kHost>& scratch_arena() const { return scratch_; }

  HostMemory allocate(std::size_t bytes) { return allocate_host(bytes); }
  void upload(HostSpan<const std::byte> from, HostSpan<std::byte> to);
  void download(HostSpan<const std::byte> from, HostSpan<std::byte> to);
  /// With all of the executor's threads.
  void copy(HostSpan<const std::byte> from, HostSpan<std::byte> to);
  /// Returns when all work submitted so far is done: at once.
  void synchronize() {}

  /// From now on check_interrupt asks `interrupt`; null: nobody.
  void set_interrupt(const Interrupt* interrupt) { interrupt_ = interrupt; }
  /// Call between kernels. Throws Interrupted.
  void check_interrupt() const {
    if (interrupt_ != nullptr && interrupt_->requested()) throw Interrupted();
  }

 private:
  int threads_;
  std::unique_ptr<oneapi::tbb::task_arena> arena_;
  ScratchArena<Space::kHost> scratch_;
  const Interrupt* interrupt_ = nullptr;
};

}  // namespace cumulus

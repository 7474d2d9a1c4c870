#pragma once

#include <chrono>

#include "kernels/core/cpu_executor.h"

namespace cumulus {

/// How long a slice of a call's work on the CPU is to take, if no other call goes before it: short of the
/// 20 ms that it may, because how long its last pieces take is not known before.
inline constexpr std::chrono::milliseconds kCpuSliceLength{8};

/// Shares a machine's cores between the calls that run on them.
class Turns {
 public:
  virtual ~Turns() = default;
  /// Called by a call's own thread between two slices of its work; waits while other calls have their turn.
  virtual void yield() = 0;
  /// Whether the slice that runs is to end early, for a call that goes before this one. From any thread.
  virtual bool wanted() const = 0;
};

/// For as long as it lives, what this thread runs on a CpuExecutor goes in slices, between which `turns` is
/// asked.
class SlicedCall {
 public:
  explicit SlicedCall(Turns& turns) { current() = &turns; }
  ~SlicedCall() { current() = nullptr; }
  SlicedCall(const SlicedCall&) = delete;
  SlicedCall& operator=(const SlicedCall&) = delete;

 private:
  friend class Slice;
  /// Null: the thread runs no call, or is within a slice.
  static Turns*& current() {
    static thread_local Turns* turns = nullptr;
    return turns;
  }
};

/// A part of a call's work, between which deadline and cancellation are asked for and other calls have their
/// turn. One within another, or outside of a SlicedCall, does not end before its work does.
class Slice {
 public:
  /// Throws Interrupted.
  explicit Slice(const CpuExecutor& executor) : turns_(SlicedCall::current()) {
    if (turns_ != nullptr) turns_->yield();
    executor.check_interrupt();
    SlicedCall::current() = nullptr;
    begin_ = std::chrono::steady_clock::now();
  }
  ~Slice() { SlicedCall::current() = turns_; }
  Slice(const Slice&) = delete;
  Slice& operator=(const Slice&) = delete;

  /// Whether it is to end before all of the work is done.
  bool ends() const { return turns_ != nullptr; }
  /// It has taken as long as it should. From any thread.
  bool over() const { return wanted() || (ends() && elapsed() >= kCpuSliceLength); }
  /// Another call goes before this one. From any thread.
  bool wanted() const { return ends() && turns_->wanted(); }
  std::chrono::steady_clock::duration elapsed() const { return std::chrono::steady_clock::now() - begin_; }

 private:
  Turns* const turns_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace cumulus

#include "library/brief_wait.h"

#include <sched.h>

#include <atomic>
#include <thread>

namespace cumulus {
namespace {

using Clock = std::chrono::steady_clock;

/// Of fewer, the server and the program may need each.
constexpr int kManyCores = 8;

std::atomic<bool> somebody_looks = false;

bool has_many_cores() {
  static const bool kMany = [] {
    cpu_set_t allowed;
    return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) >= kManyCores;
  }();
  return kMany;
}

}  // namespace

BriefWait::BriefWait(std::chrono::microseconds limit)
    : only_one_(has_many_cores() && !somebody_looks.exchange(true)), end_(Clock::now() + limit) {}

BriefWait::~BriefWait() {
  if (only_one_) somebody_looks = false;
}

bool BriefWait::goes_on() const {
  if (!only_one_ || Clock::now() > end_) return false;
  std::this_thread::yield();
  return true;
}

}  // namespace cumulus

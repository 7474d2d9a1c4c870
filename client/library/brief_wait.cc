#include "library/brief_wait.h"

#include <atomic>
#include <thread>

#include "proto/cores.h"

namespace cumulus {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> somebody_looks = false;

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

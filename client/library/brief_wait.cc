#include "library/brief_wait.h"

#include <atomic>

#include "proto/cores.h"

namespace cumulus {
namespace {

std::atomic<bool> somebody_looks = false;

}  // namespace

BriefWait::BriefWait(std::chrono::microseconds limit) : look_(has_many_cores(), somebody_looks, limit) {}

}  // namespace cumulus

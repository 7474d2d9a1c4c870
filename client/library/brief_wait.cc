#include "library/brief_wait.h"

#include <atomic>

namespace cumulus {
namespace {

std::atomic<bool> somebody_looks = false;

}  // namespace

BriefWait::BriefWait(std::chrono::microseconds limit) : look_(somebody_looks, limit) {}

}  // namespace cumulus

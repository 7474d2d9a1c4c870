#pragma once

#include <sched.h>

namespace cumulus {

/// Whether this process may use so many cores that a thread of it may look for something all the time for a
/// while. Of fewer, the server and the program may need each.
inline bool has_many_cores() {
  constexpr int kMany = 8;
  static const bool kHas = [] {
    cpu_set_t allowed;
    return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) >= kMany;
  }();
  return kHas;
}

}  // namespace cumulus

#pragma once

#include <absl/synchronization/mutex.h>
#include <malloc.h>

/// What the programs at both ends of the wire set for their whole process. Not for the client library: the
/// process is the renderer's.
namespace cumulus {

/// Keeps what gRPC frees. It frees and allocates a megabyte for each chunk of a transfer; glibc would give
/// these pages back to the system and take them anew, with 140 to 210 page faults for each MiB.
inline void keep_heap() {
#if defined(__GLIBC__)
  constexpr int kMebibyte = 1 << 20;
  // Setting any of these ends glibc's own adjustment of the mmap threshold, so it is set too.
  mallopt(M_MMAP_THRESHOLD, 32 * kMebibyte);
  mallopt(M_TRIM_THRESHOLD, 256 * kMebibyte);
  mallopt(M_TOP_PAD, 64 * kMebibyte);
#endif
}

/// Call it before other threads start.
inline void prepare_process() {
  keep_heap();
  // Debian's abseil is built to look for cycles at each lock that gRPC takes, a twelfth of a busy server's
  // time.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace cumulus

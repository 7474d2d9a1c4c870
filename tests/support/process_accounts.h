#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace cumulus::testing {

/// Which part of the processor's time that the process spends in `body` its calling thread has: what it takes
/// on a busy machine says little.
template <class Body>
double share_of_the_caller(const Body& body) {
  const auto seconds = [](int who) {
    rusage usage{};
    getrusage(who, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double caller = seconds(RUSAGE_THREAD);
  const double all = seconds(RUSAGE_SELF);
  body();
  return (seconds(RUSAGE_THREAD) - caller) / (seconds(RUSAGE_SELF) - all);
}

/// Bytes of the process's memory that are no file's; 0 where the system does not say.
inline std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

/// The most of them that `body` holds at once beyond those that were there, as far as is seen by one who
/// looks once a millisecond.
template <class Body>
std::int64_t anonymous_bytes_of(const Body& body) {
  const std::int64_t before = anonymous_bytes();
  std::atomic<std::int64_t> most = before;
  std::atomic<bool> ended = false;
  std::thread watch([&] {
    for (; !ended; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      most = std::max(most.load(), anonymous_bytes());
  });
  body();
  ended = true;
  watch.join();
  return most - before;
}

}  // namespace cumulus::testing

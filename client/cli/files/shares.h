#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

namespace cumulus::cli {

/// How many processors share so many bytes: of less than some megabytes each, threads are dearer than the
/// copying, or the reading, which waits for memory.
inline std::size_t shares_of(std::size_t bytes) {
  constexpr std::size_t kShare = std::size_t{8} << 20;
  return std::clamp<std::size_t>(bytes / kShare, 1, std::max(1U, std::thread::hardware_concurrency()));
}

/// Calls body(share, first, end) for `shares` parts of [0, count), at once: the caller does the first.
template <class Body>
void for_each_share(std::size_t shares, std::size_t count, const Body& body) {
  std::vector<std::thread> threads;
  const auto run = [&](std::size_t share) {
    body(share, count * share / shares, count * (share + 1) / shares);
  };
  for (std::size_t share = 1; share < shares; ++share) threads.emplace_back(run, share);
  run(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cumulus::cli

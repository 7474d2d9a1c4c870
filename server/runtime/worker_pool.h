#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cumulus::server {

/// A few threads for host work that must not run on gRPC's: decoding, mostly. Bounded.
class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t max_queue);
  /// Runs what is queued, then ends.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False where max_queue tasks wait already; `task` is then dropped. Tasks do not throw.
  bool try_post(std::function<void()> task);

 private:
  void run();

  const std::size_t max_queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cumulus::server

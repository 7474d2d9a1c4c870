#include "server/runtime/worker_pool.h"

#include <utility>

namespace cumulus::server {

WorkerPool::WorkerPool(std::size_t threads, std::size_t max_queue) : max_queue_(max_queue) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::try_post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= max_queue_) return false;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace cumulus::server

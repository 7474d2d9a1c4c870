#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cumulus::cli {

/// What `read` gives of 0 to `count` - 1, in this order, while the next ones are being read on other threads:
/// as many at a time as there are processors, and `window` of them kept in store.
template <class T>
class ReadAhead {
 public:
  ReadAhead(std::size_t count, std::size_t window, std::function<T(std::size_t)> read)
      : count_(count), read_(std::move(read)), slots_(std::max<std::size_t>(1, window)) {
    const std::size_t threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, slots_);
    for (std::size_t worker = 0; worker < threads; ++worker) workers_.emplace_back([this] { work(); });
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  /// To be called `count` times at most.
  T next() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [&] { return read_values_.contains(given_); });
    T value = std::move(read_values_.extract(given_++).mapped());
    lock.unlock();
    room_.notify_all();
    return value;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return stopped_ || begun_ == count_ || begun_ < given_ + slots_; });
      if (stopped_ || begun_ == count_) return;
      const std::size_t index = begun_++;
      lock.unlock();
      T value = read_(index);
      lock.lock();
      read_values_.emplace(index, std::move(value));
      there_.notify_all();
    }
  }

  const std::size_t count_;
  const std::function<T(std::size_t)> read_;
  const std::size_t slots_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable there_;
  std::map<std::size_t, T> read_values_;
  std::size_t begun_ = 0;
  std::size_t given_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace cumulus::cli

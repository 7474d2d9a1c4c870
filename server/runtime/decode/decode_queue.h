#pragma once

#include <absl/status/status.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace cumulus::server {

/// A few threads, which decode the images of calls, one call each at a time. Clients take turns, and none has
/// more than its share of the threads and of the places to wait, so that one that sends images without end
/// holds up its own calls only. Thread-safe.
class DecodeQueue {
 public:
  struct Limits {
    std::size_t threads = 0;
    std::size_t threads_per_client = 0;
    std::size_t max_waiting = 0;
    std::size_t max_waiting_per_client = 0;
  };
  struct Task {
    std::function<void()> run;       // does not throw
    std::function<bool()> unwanted;  // true: `run` will do nothing but answer so
  };

  explicit DecodeQueue(const Limits& limits);
  /// Runs what is queued, then ends.
  ~DecodeQueue();
  DecodeQueue(const DecodeQueue&) = delete;
  DecodeQueue& operator=(const DecodeQueue&) = delete;

  /// UNAVAILABLE (QUEUE_FULL) where too many tasks wait already, of this client or of all; `task` is then
  /// dropped.
  absl::Status post(const std::string& client, Task task);

 private:
  struct Client {
    std::string name;
    std::deque<Task> waiting;
    std::size_t running = 0;
  };
  using Clients = std::list<Client>;

  void run();
  Clients::iterator find(const std::string& name);
  Clients::iterator next_client();
  /// Takes out what nobody wants any more.
  std::vector<Task> remove_unwanted();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clients clients_;  // with something waiting or running; who was served goes to the end
  std::size_t waiting_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cumulus::server

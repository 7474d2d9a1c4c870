#include "server/runtime/decode/decode_queue.h"

#include <absl/time/time.h>

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

absl::Status full(std::size_t waiting, std::string_view of_whom, std::string_view limit) {
  return unavailable("QUEUE_FULL",
                     concat("images of ", waiting, " calls", of_whom,
                            " wait to be decoded, which is the limit (", limit, "); try again later"),
                     absl::Milliseconds(100));
}

}  // namespace

DecodeQueue::DecodeQueue(const Limits& limits) : limits_(limits) {
  for (std::size_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { run(); });
}

DecodeQueue::~DecodeQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status DecodeQueue::post(const std::string& client, Task task) {
  std::vector<Task> unwanted;  // answered after the lock
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    auto owner = find(client);
    const auto is_full = [&] {
      return waiting_ >= limits_.max_waiting ||
             (owner != clients_.end() && owner->waiting.size() >= limits_.max_waiting_per_client);
    };
    if (is_full()) {
      unwanted = remove_unwanted();
      owner = find(client);
    }
    if (waiting_ >= limits_.max_waiting) {
      status = full(limits_.max_waiting, "", "max_decode_queue");
    } else if (is_full()) {
      status = full(limits_.max_waiting_per_client, " of this client", "max_decode_queue_per_client");
    } else {
      if (owner == clients_.end()) owner = clients_.insert(clients_.end(), Client{client, {}, 0});
      owner->waiting.push_back(std::move(task));
      ++waiting_;
    }
  }
  changed_.notify_one();
  for (const Task& left : unwanted) left.run();
  return status;
}

DecodeQueue::Clients::iterator DecodeQueue::find(const std::string& name) {
  return std::find_if(clients_.begin(), clients_.end(),
                      [&](const Client& client) { return client.name == name; });
}

DecodeQueue::Clients::iterator DecodeQueue::next_client() {
  return std::find_if(clients_.begin(), clients_.end(), [&](const Client& client) {
    // At the end everybody is served, as there will be nobody else.
    return !client.waiting.empty() && (stopping_ || client.running < limits_.threads_per_client);
  });
}

std::vector<DecodeQueue::Task> DecodeQueue::remove_unwanted() {
  std::vector<Task> unwanted;
  for (auto client = clients_.begin(); client != clients_.end();) {
    auto& waiting = client->waiting;
    const auto kept = std::stable_partition(waiting.begin(), waiting.end(),
                                            [](const Task& task) { return !task.unwanted(); });
    std::move(kept, waiting.end(), std::back_inserter(unwanted));
    waiting.erase(kept, waiting.end());
    client = waiting.empty() && client->running == 0 ? clients_.erase(client) : std::next(client);
  }
  waiting_ -= unwanted.size();
  return unwanted;
}

void DecodeQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return next_client() != clients_.end() || (stopping_ && waiting_ == 0); });
    const auto client = next_client();
    if (client == clients_.end()) return;
    const Task task = std::move(client->waiting.front());
    client->waiting.pop_front();
    --waiting_;
    ++client->running;
    clients_.splice(clients_.end(), clients_, client);
    lock.unlock();
    task.run();
    lock.lock();
    --client->running;
    clients_.splice(clients_.end(), clients_, client);  // behind those who came meanwhile
    if (client->running == 0 && client->waiting.empty()) clients_.erase(client);
    changed_.notify_all();  // the client may have another, and at the end all threads look again
  }
}

}  // namespace cumulus::server

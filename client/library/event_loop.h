#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <thread>

namespace cumulus {

/// A completion queue and the thread that handles its events. gRPC's own callback threads will not
/// do: in gRPC 1.51 they cannot destroy the last channel, and a user's callback may hold the last handle to
/// one.
class EventLoop {
 public:
  /// What happens when an event comes; `ok` as CompletionQueue::Next tells it.
  using Handler = std::function<void(bool ok)>;

  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  /// Waits for the events that are still to come, but on its own thread, which ends after them.
  ~EventLoop();

  grpc::CompletionQueue* queue() { return queue_.get(); }

  /// The tag of exactly one operation on the queue.
  static void* tag(Handler handler) { return new Handler(std::move(handler)); }

 private:
  const std::shared_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

}  // namespace cumulus

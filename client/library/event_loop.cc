#include "library/event_loop.h"

#include <utility>

namespace cumulus {
namespace {

void handle_events(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    const std::unique_ptr<EventLoop::Handler> handler(static_cast<EventLoop::Handler*>(tag));
    (*handler)(ok);
  }
}

}  // namespace

EventLoop::EventLoop()
    : queue_(std::make_shared<grpc::CompletionQueue>()),
      thread_([queue = queue_] { handle_events(*queue); }) {}

EventLoop::~EventLoop() {
  queue_->Shutdown();
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace cumulus

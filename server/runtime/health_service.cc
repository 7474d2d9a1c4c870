#include "server/runtime/health_service.h"

#include <optional>

#include "server/pipeline/errors.h"
#include "server/runtime/drain.h"

namespace cumulus::server {

/// One Watch. Deletes itself once gRPC is done with it.
class HealthService::Watcher final : public grpc::ServerWriteReactor<Response> {
 public:
  Watcher(HealthService& service, std::string name) : service_(service), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  void say(Response::ServingStatus status) {
    {
      const std::lock_guard lock(mutex_);
      next_ = status;
    }
    go_on();
  }
  void end(const grpc::Status& status) {
    {
      const std::lock_guard lock(mutex_);
      if (!end_.has_value()) end_ = status;
    }
    go_on();
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (!ok && !end_.has_value()) end_ = grpc::Status::CANCELLED;
    }
    go_on();
  }
  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override {
    service_.forget(this);
    delete this;
  }

 private:
  /// Writes the next status, or finishes, where no write is under way.
  void go_on() {
    std::unique_lock lock(mutex_);
    if (writing_ || finished_) return;
    if (end_.has_value()) {
      finished_ = true;
      const grpc::Status status = *end_;
      lock.unlock();  // it may be the end of this
      Finish(status);
      return;
    }
    if (next_ == said_) return;
    said_ = next_;
    message_.set_status(*said_);
    writing_ = true;
    StartWrite(&message_);
  }

  HealthService& service_;
  const std::string name_;
  std::mutex mutex_;
  Response message_;  // that is being written
  std::optional<Response::ServingStatus> said_;
  std::optional<Response::ServingStatus> next_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
};

HealthService::HealthService() = default;
HealthService::~HealthService() = default;

void HealthService::add_names(const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  names_.insert(names.begin(), names.end());
}

void HealthService::set_serving(bool serving) {
  // Held over the calls, so that statuses arrive in their order and no watcher goes meanwhile.
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  for (Watcher* watcher : watchers_) watcher->say(status_of(watcher->name()));
}

void HealthService::end_watches() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (Watcher* watcher : watchers_) watcher->end(to_grpc(draining()));
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context, const Request* request,
                                               Response* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const std::lock_guard lock(mutex_);
  const Response::ServingStatus status = status_of(request->service());
  response->set_status(status);
  reactor->Finish(
      status != Response::SERVICE_UNKNOWN
          ? grpc::Status::OK
          : to_grpc(not_found("SERVICE_NOT_FOUND",
                              "this server has no such service; an empty name asks for the whole")));
  return reactor;
}

grpc::ServerWriteReactor<HealthService::Response>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/, const Request* request) {
  auto* watcher = new Watcher(*this, request->service());
  const std::lock_guard lock(mutex_);
  watchers_.insert(watcher);
  if (ended_) {
    watcher->end(to_grpc(draining()));
  } else {
    watcher->say(status_of(watcher->name()));
  }
  return watcher;
}

HealthService::Response::ServingStatus HealthService::status_of(const std::string& service) const {
  if (!names_.contains(service)) return Response::SERVICE_UNKNOWN;
  return serving_ ? Response::SERVING : Response::NOT_SERVING;
}

void HealthService::forget(Watcher* watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

}  // namespace cumulus::server

#include "server/runtime/connections/open_calls.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/runtime/malformed_message.h"

namespace cumulus::server {
namespace {

using grpc::experimental::InterceptionHookPoints;

/// Streams that last as long as their client likes and keep nothing: health's Watch, and reflection.
bool is_awaited(std::string_view method) { return method.rfind("/cumulus.", 0) == 0; }

class CallInterceptor final : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(std::shared_ptr<OpenCalls> calls, grpc::experimental::ServerRpcInfo& info)
      : method_(info.method()),
        unary_(info.type() == grpc::experimental::ServerRpcInfo::Type::UNARY),
        call_(std::move(calls), info.server_context()->peer(), is_awaited(method_)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (unary_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE))
      malformed_ = methods->GetRecvMessage() == nullptr;
    if (malformed_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS))
      methods->ModifySendStatus(to_grpc(malformed_message(method_)));
    methods->Proceed();
  }

 private:
  const std::string method_;
  const bool unary_;
  const OpenCall call_;
  bool malformed_ = false;
};

class Interceptors final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Interceptors(std::shared_ptr<OpenCalls> calls, std::vector<std::string> counted)
      : calls_(std::move(calls)), counted_(std::move(counted)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    const std::string_view method = info->method();
    const bool counts_itself = std::any_of(counted_.begin(), counted_.end(),
                                           [&](const std::string& path) { return method.starts_with(path); });
    return counts_itself ? nullptr : new CallInterceptor(calls_, *info);  // gRPC's to delete
  }

 private:
  const std::shared_ptr<OpenCalls> calls_;
  const std::vector<std::string> counted_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_call_interceptors(
    std::shared_ptr<OpenCalls> calls, std::vector<std::string> counted) {
  return std::make_unique<Interceptors>(std::move(calls), std::move(counted));
}

void OpenCalls::begin(const std::string& peer, bool awaited) {
  const std::lock_guard lock(mutex_);
  ++peers_[peer].calls;
  ++begun_;
  if (awaited) ++awaited_;
}

void OpenCalls::end(const std::string& peer, bool awaited) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (--found->second.calls == 0) {
    found->second.idle_since = steady_now();
    if (found->second.forgotten) peers_.erase(found);
  }
  if (awaited) end_awaited();
}

void OpenCalls::end_awaited() {
  if (--awaited_ == 0) none_awaited_.notify_all();
}

void OpenCalls::begin_work() {
  const std::lock_guard lock(mutex_);
  ++awaited_;
}

void OpenCalls::end_work() {
  const std::lock_guard lock(mutex_);
  end_awaited();
}

absl::Time OpenCalls::idle_since(const std::string& peer) const {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return absl::InfinitePast();
  return found->second.calls > 0 ? absl::InfiniteFuture() : found->second.idle_since;
}

void OpenCalls::forget(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second.forgotten = true;  // its calls may outlive the connection
  if (found->second.calls == 0) peers_.erase(found);
}

void OpenCalls::wait_for_none(absl::Duration limit) {
  std::unique_lock lock(mutex_);
  none_awaited_.wait_for(lock, absl::ToChronoNanoseconds(limit), [this] { return awaited_ == 0; });
}

}  // namespace cumulus::server

#include "server/runtime/connections/open_calls.h"

#include <absl/time/clock.h>

#include <string_view>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

using grpc::experimental::InterceptionHookPoints;

/// Streams that last as long as their client likes and keep nothing: health's Watch, and reflection.
bool is_awaited(std::string_view method) { return method.rfind("/cumulus.", 0) == 0; }

class CallInterceptor final : public grpc::experimental::Interceptor {
 public:
  CallInterceptor(std::shared_ptr<OpenCalls> calls, grpc::experimental::ServerRpcInfo& info)
      : calls_(std::move(calls)),
        peer_(info.server_context()->peer()),
        method_(info.method()),
        unary_(info.type() == grpc::experimental::ServerRpcInfo::Type::UNARY) {
    calls_->begin(peer_, is_awaited(method_));
  }
  ~CallInterceptor() override { calls_->end(peer_, is_awaited(method_)); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (unary_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE))
      malformed_ = methods->GetRecvMessage() == nullptr;
    if (malformed_ && methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->ModifySendStatus(to_grpc(bad_request(
          "MALFORMED_MESSAGE", concat("the message is none that ", method_,
                                      " takes; make it with the version of the .proto files that this "
                                      "server has, or an older one"))));
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<OpenCalls> calls_;
  const std::string peer_;
  const std::string method_;
  const bool unary_;
  bool malformed_ = false;
};

class Interceptors final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Interceptors(std::shared_ptr<OpenCalls> calls) : calls_(std::move(calls)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new CallInterceptor(calls_, *info);  // gRPC's to delete
  }

 private:
  const std::shared_ptr<OpenCalls> calls_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> make_call_interceptors(
    std::shared_ptr<OpenCalls> calls) {
  return std::make_unique<Interceptors>(std::move(calls));
}

void OpenCalls::begin(const std::string& peer, bool awaited) {
  const std::lock_guard lock(mutex_);
  ++peers_[peer].calls;
  if (awaited) ++awaited_;
}

void OpenCalls::end(const std::string& peer, bool awaited) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer);
  if (--found->second.calls == 0) {
    found->second.idle_since = absl::Now();
    if (found->second.forgotten) peers_.erase(found);
  }
  if (awaited && --awaited_ == 0) none_awaited_.notify_all();
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

#include "library/session_state.h"

#include <algorithm>
#include <thread>

#include "cumulus/errors.h"
#include "cumulus/v1/server.pb.h"
#include "library/uuid.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

// A worker whose device has failed is gone within 2 s, and another one is there.
constexpr absl::Duration kFaultyServerEnds = absl::Seconds(3);
// A server that is known by an address of its own may not come back, and another has room.
constexpr absl::Duration kEndpointReturns = absl::Seconds(2);

absl::Status renew_once(const Lease& lease, const CallOptions& options) {
  v1::GetSessionRequest request;
  request.set_name(lease.name);
  return lease.connection
      ->call_and_wait<v1::Session>("/cumulus.v1.Sessions/GetSession", request, options, lease.context())
      .status();
}

/// Of a server that has restarted, or another one. Without an answer the old ones stay.
void renew_capabilities(Connection& server, const CallOptions& options) {
  const auto capabilities = server.call_and_wait<v1::Capabilities>("/cumulus.v1.Server/GetCapabilities",
                                                                   v1::GetCapabilitiesRequest(), options);
  if (capabilities.ok()) server.take_capabilities(*capabilities);
}

}  // namespace

absl::Status SessionState::create(Outage& outage) {
  v1::CreateSessionRequest request;
  if (options_.ttl.has_value()) wire::encode_duration(*options_.ttl, *request.mutable_ttl());
  request.set_quota_bytes(options_.quota_bytes);
  request.set_device(options_.device);
  request.set_request_id(options_.call.request_id);
  absl::StatusOr<v1::Session> created;
  do {
    request.set_session_id(make_uuid());  // a new one each time: whether the last was made is not known
    created =
        server_->call_and_wait<v1::Session>("/cumulus.v1.Sessions/CreateSession", request, outage.options());
  } while (!created.ok() && outage.wait_after(created.status()));
  if (!created.ok()) return created.status();
  if (lease() != nullptr) renew_capabilities(*server_, outage.options());
  {
    const std::lock_guard lock(mutex_);
    const int generation = lease_ != nullptr ? lease_->generation + 1 : 0;
    lease_ =
        std::make_shared<const Lease>(Lease{generation, server_->to(created->endpoint()), created->name(),
                                            created->device(), created->instance(), created->endpoint()});
  }
  if (options_.keep_alive) {
    // This machine's clock may be hours behind the server's, so that the lease would seem to be as much
    // longer; where it is before it, the lease is renewed more often than it need be.
    constexpr absl::Duration kLongestGuess = absl::Minutes(3);
    const auto end = absl::FromUnixSeconds(created->expire_time().seconds());
    const absl::Duration granted = std::min(end - on_the_clock(steady_now()), kLongestGuess);
    keep_alive(std::max(options_.ttl.value_or(granted), absl::Seconds(3)));
  }
  return absl::OkStatus();
}

std::shared_ptr<const Lease> SessionState::lease() const {
  const std::lock_guard lock(mutex_);
  return lease_;
}

absl::Status SessionState::go_on_after(const absl::Status& failure, const Lease& failed, Outage& outage) {
  if (!options_.recreate || !outage.may_repeat_after(failure)) return failure;
  const std::lock_guard turn(recoveries_);
  const absl::Time begin = steady_now();
  const bool faulty = error_reason(failure) == "DEVICE_FAULT";
  while (true) {
    if (closed()) return failure;
    if (lease()->generation != failed.generation) return absl::OkStatus();  // another call has made it again
    absl::Status there = renew_once(failed, outage.options());
    const absl::Duration lasted = steady_now() - begin;
    if (there.ok() && !(faulty && lasted < kFaultyServerEnds)) return absl::OkStatus();
    const bool elsewhere = failed.connection != server_ && lasted > kEndpointReturns;
    if (absl::IsNotFound(there) || (elsewhere && is_loss(there))) return create(outage);
    if (!outage.wait_after(there.ok() ? failure : there)) return there.ok() ? failure : there;
  }
}

void SessionState::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(work));
  if (working_) return;
  working_ = true;
  std::thread([self = shared_from_this()] { self->work(); }).detach();
}

void SessionState::work() {
  std::unique_lock lock(mutex_);
  while (!posted_.empty()) {
    std::function<void()> next = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    next();
    next = nullptr;
    lock.lock();
  }
  working_ = false;
}

void SessionState::keep_alive(absl::Duration ttl) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  renewal_ = std::make_unique<grpc::Alarm>();
  // Weak: a renewal that is due keeps nothing alive.
  const auto renew = [weak = weak_from_this(), ttl](bool due) {
    const auto self = weak.lock();
    if (!due || self == nullptr) return;
    const std::shared_ptr<const Lease> lease = self->lease();
    v1::GetSessionRequest request;
    request.set_name(lease->name);
    CallOptions options;
    options.timeout = ttl / 3;
    const auto renewed = [weak, ttl](const absl::StatusOr<grpc::ByteBuffer>& answer) {
      const auto session = weak.lock();
      if (session != nullptr && !absl::IsNotFound(answer.status())) session->keep_alive(ttl);
    };
    lease->connection->call("/cumulus.v1.Sessions/GetSession", wire::serialize(request), options,
                            lease->context(), renewed);
  };
  renewal_->Set(server_->queue(), absl::ToChronoTime(on_the_clock(steady_now() + ttl / 3)),
                EventLoop::tag(renew));
}

void SessionState::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  if (renewal_ != nullptr) renewal_->Cancel();
}

bool SessionState::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace cumulus

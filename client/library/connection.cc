#include "library/connection.h"

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "cumulus/v1/server.pb.h"
#include "library/brief_wait.h"
#include "library/cancellation.h"
#include "library/credentials.h"
#include "library/outage.h"
#include "proto/metadata.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

/// One unary call with its repetitions. Keeps itself alive until it has called `done`.
class UnaryCall : public std::enable_shared_from_this<UnaryCall> {
 public:
  UnaryCall(std::shared_ptr<Connection> connection, std::string method, const grpc::ByteBuffer& request,
            CallContext terms, absl::Time deadline, Connection::Done done)
      : connection_(std::move(connection)),
        method_(std::move(method)),
        request_(request),
        terms_(std::move(terms)),
        deadline_(deadline),
        done_(std::move(done)) {}

  void start(const std::optional<Cancellation>& cancellation) {
    scope_ = CancellationScope(cancellation, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->cancel();
    });
    attempt();
  }

 private:
  void attempt() {
    grpc::ClientContext* context = nullptr;
    {
      const std::lock_guard lock(mutex_);
      context_ = std::make_unique<grpc::ClientContext>();
      connection_->prepare(*context_);
      context_->set_deadline(absl::ToChronoTime(on_the_clock(deadline_)));
      terms_.write(*context_);
      if (cancelled_) context_->TryCancel();
      context = context_.get();
    }
    response_.Clear();
    reader_ = connection_->stub().PrepareUnaryCall(context, method_, request_, connection_->queue());
    reader_->StartCall();
    reader_->Finish(&response_, &status_, EventLoop::tag([self = shared_from_this()](bool) {
      self->finish_attempt(wire::status_from_grpc(self->status_));
    }));
  }

  void finish_attempt(absl::Status status) {
    reader_.reset();  // it lives in the call that context_ owns
    const std::optional<absl::Duration> delay = delay_after(status);
    if (delay.has_value() && steady_now() + *delay < deadline_ && attempt_later(*delay)) return;
    scope_ = CancellationScope();
    if (status.ok()) {
      done_(std::move(response_));
    } else {
      done_(std::move(status));
    }
    done_ = nullptr;
  }

  /// How long to wait before the next attempt; empty where there is to be none.
  std::optional<absl::Duration> delay_after(const absl::Status& status) {
    const std::optional<absl::Duration> asked =
        absl::IsUnavailable(status) ? retry_delay(status) : std::nullopt;
    if (asked.has_value()) return std::max(*asked, back_off_.next());
    if (!terms_.outlasts_breaks || !is_break(status)) return std::nullopt;
    broken_since_ = std::min(broken_since_, steady_now());
    if (steady_now() - broken_since_ > connection_->max_outage()) return std::nullopt;
    return back_off_.next();
  }

  /// False where the call has been cancelled meanwhile.
  bool attempt_later(absl::Duration delay) {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return false;
    alarm_ = std::make_unique<grpc::Alarm>();
    // An alarm that was cancelled goes on to attempt(), which ends at once with CANCELLED.
    alarm_->Set(absl::ToChronoTime(on_the_clock(steady_now() + delay)),
                // Given up by the alarm, which this call holds: neither would ever go otherwise.
                [self = shared_from_this()](bool) mutable { std::exchange(self, nullptr)->attempt(); });
    return true;
  }

  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    if (alarm_ != nullptr) alarm_->Cancel();
  }

  const std::shared_ptr<Connection> connection_;
  const std::string method_;
  const grpc::ByteBuffer request_;
  const CallContext terms_;
  const absl::Time deadline_;
  absl::Time broken_since_ = absl::InfiniteFuture();
  Connection::Done done_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  BackOff back_off_;
  CancellationScope scope_;

  std::mutex mutex_;  // of what cancel() touches
  bool cancelled_ = false;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::Alarm> alarm_;
};

constexpr int kMaxMessageBytes =
    8 << 20;  // above the server's 4 MiB, so that its own limit is the one that speaks

void ping_while_calls_wait(grpc::ChannelArguments& arguments, absl::Duration dead_after) {
  const auto half = static_cast<int>(
      absl::ToInt64Milliseconds(std::clamp(dead_after, absl::Seconds(2), absl::Hours(24)) / 2));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, half);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, half);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                   0);  // a call that computes moves no data; 0: any number
}

/// gRPC is begun once and stays. Else it ends with the last channel, and begins anew with the next, each time
/// with its threads; and where a process ends, it would end on an event loop's thread meanwhile.
void keep_grpc() {
  [[maybe_unused]] static const bool kBegun = [] {
    grpc_init();
    return true;
  }();
}

/// Those of the options, or of the environment, which a Unix socket does not look at.
absl::StatusOr<Credentials> credentials_for(const std::string& target, const ConnectOptions& options) {
  if (options.credentials.has_value()) return *options.credentials;
  if (target.rfind("unix:", 0) == 0) return Credentials();
  absl::StatusOr<ClientSettings> settings = read_client_settings();
  if (!settings.ok()) return settings.status();
  return std::move(settings->credentials);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Connection>> Connection::open(const std::string& target,
                                                             const ConnectOptions& options) {
  absl::StatusOr<Credentials> credentials = credentials_for(target, options);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<ChannelSecurity> security = secure(target, *credentials);
  if (!security.ok()) return security.status();
  keep_grpc();
  return std::shared_ptr<Connection>(new Connection(target, options, *std::move(security)));
}

Connection::Connection(std::string target, const ConnectOptions& options, ChannelSecurity security)
    : target_(std::move(target)),
      options_(options),
      credentials_(std::move(security.credentials)),
      authorization_(std::move(security.authorization)),
      encrypted_(security.encrypted),
      stub_(make_channel()),
      shared_memory_(options.shared_memory && is_on_this_machine(target_)) {}

std::shared_ptr<grpc::Channel> Connection::make_channel() const {
  grpc::ChannelArguments arguments;
  ping_while_calls_wait(arguments, options_.dead_after);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // gRPC gives an attempt to connect at least this long, and a far or busy server needs it.
  arguments.SetInt(
      GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
      static_cast<int>(absl::ToInt64Milliseconds(std::min(options_.connect_timeout, absl::Hours(1)))));
  // A server that comes back is to be found within a second or so.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Each channel has a connection of its own, though gRPC would share one among channels that are alike.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target_, credentials_, arguments);
}

grpc::GenericStub& Connection::stub(int lane) {
  if (lane == 0) return stub_;
  const std::lock_guard lock(mutex_);
  const auto known = lanes_.find(lane);
  return known != lanes_.end() ? known->second : lanes_.try_emplace(lane, make_channel()).first->second;
}

void Connection::take_capabilities(const v1::Capabilities& capabilities) {
  joins_uploads_ = capabilities.joined_uploads();
  shared_memory_.set_socket(capabilities.shared_memory_socket());
}

std::shared_ptr<Connection> Connection::to(const std::string& endpoint) {
  if (endpoint.empty() || endpoint == target_) return shared_from_this();
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Connection>& known = others_[endpoint];
  if (std::shared_ptr<Connection> other = known.lock()) return other;
  absl::StatusOr<std::shared_ptr<Connection>> other = open(endpoint, options_);
  // Its files have changed since: this connection still has what they held.
  if (!other.ok()) return shared_from_this();
  known = *other;
  (*other)->joins_uploads_ = joins_uploads();
  (*other)->shared_memory_.set_socket(shared_memory_.socket());
  return *std::move(other);
}

void CallContext::write(grpc::ClientContext& context) const {
  if (!session.empty()) context.AddMetadata(kSessionKey, session);
  if (!instance.empty()) context.AddMetadata(kInstanceKey, instance);
}

void Connection::call(std::string method, const grpc::ByteBuffer& request, const CallOptions& options,
                      const CallContext& context, Done done) {
  std::make_shared<UnaryCall>(shared_from_this(), std::move(method), request, context, deadline(options),
                              std::move(done))
      ->start(options.cancellation);
}

absl::StatusOr<grpc::ByteBuffer> Connection::call_and_wait(std::string method,
                                                           const grpc::ByteBuffer& request,
                                                           const CallOptions& options,
                                                           const CallContext& context) {
  // Shared: the callback's end may outlive the wait.
  const auto answer = std::make_shared<std::promise<absl::StatusOr<grpc::ByteBuffer>>>();
  call(std::move(method), request, options, context,
       [answer](absl::StatusOr<grpc::ByteBuffer> response) { answer->set_value(std::move(response)); });
  return get_soon(answer->get_future());
}

absl::Time Connection::deadline(const CallOptions& options, absl::Duration allowance) const {
  return steady_now() + options.timeout.value_or(options_.call_timeout + allowance);
}

absl::Duration BackOff::next() {
  static thread_local std::minstd_rand random(std::random_device{}());
  const absl::Duration delay = delay_ * std::uniform_real_distribution(0.75, 1.25)(random);
  delay_ = std::min(delay_ * 2, absl::Seconds(1));
  return delay;
}

}  // namespace cumulus

#include "library/run_operation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "library/buffer_state.h"
#include "library/operation_access.h"
#include "library/operation_request.h"
#include "library/result_decoder.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

using RunDone = std::function<void(absl::StatusOr<Result>)>;

/// How the call's outputs can be made again; null where they cannot.
std::shared_ptr<Production> production_of(const SessionState& session, const Operation& operation,
                                          const RunOptions& options) {
  if (!session.recreates()) return nullptr;
  constexpr int kMaxDepth = 1000;
  int depth = 1;
  for (const auto& buffer : OperationAccess::request(operation).buffers) {
    if (buffer == nullptr) continue;
    const bool lasts = buffer->upload.has_value() || buffer->production != nullptr;
    if (!lasts) return nullptr;
    if (buffer->production != nullptr) depth = std::max(depth, buffer->production->depth + 1);
  }
  if (depth > kMaxDepth) return nullptr;
  auto production = std::make_shared<Production>(Production{operation, options, depth});
  production->options.call = {};
  return production;
}

/// One operation of a session, with its repetitions. Keeps itself alive until it has called `done`.
class SessionCall : public std::enable_shared_from_this<SessionCall> {
 public:
  SessionCall(std::shared_ptr<SessionState> session, Operation operation, RunOptions options, RunDone done)
      : session_(std::move(session)),
        operation_(std::move(operation)),
        options_(std::move(options)),
        done_(std::move(done)),
        deadline_(session_->server()->deadline(options_.call)),
        outage_(deadline_, session_->server()->max_outage(), options_.call.cancellation) {}

  void attempt() {
    lease_ = session_->lease();
    const auto& request = OperationAccess::request(operation_);
    const auto names = names_under(*session_, *lease_, request.buffers);
    if (!names.ok()) return done_(names.status());
    if (!names->has_value()) return session_->post([self = shared_from_this()] { self->restore_inputs(); });
    const absl::StatusOr<grpc::ByteBuffer> message = request.encode(**names, lease_->name, options_);
    if (!message.ok()) return done_(message.status());
    options_.call.timeout = deadline_ - steady_now();
    lease_->connection->call(request.method, *message, options_.call, lease_->context(),
                             [self = shared_from_this()](absl::StatusOr<grpc::ByteBuffer> answer) {
                               self->take(std::move(answer));
                             });
  }

 private:
  void take(absl::StatusOr<grpc::ByteBuffer> answer) {
    if (answer.ok()) {
      return done_(decode_result(*answer, session_, *lease_, production_of(*session_, operation_, options_)));
    }
    // Not on this thread: it is the connection's.
    if (session_->recreates() && is_loss(answer.status())) {
      outage_.begin();  // now, not when its turn has come
      return session_->post([self = shared_from_this(), failure = answer.status()] { self->go_on(failure); });
    }
    done_(answer.status());
  }

  void restore_inputs() {
    const absl::Status status =
        restore(*session_, *lease_, OperationAccess::request(operation_).buffers, outage_);
    if (status.ok()) return attempt();
    go_on(status);
  }

  void go_on(const absl::Status& failure) {
    const absl::Status status = session_->go_on_after(failure, *lease_, outage_);
    if (status.ok()) return attempt();
    done_(status);
  }

  const std::shared_ptr<SessionState> session_;
  const Operation operation_;
  RunOptions options_;
  const RunDone done_;
  const absl::Time deadline_;
  Outage outage_;
  std::shared_ptr<const Lease> lease_;  // of the attempt
};

void run_without_session(Connection& connection, const Operation& operation, const RunOptions& options,
                         const RunDone& done) {
  const auto& request = OperationAccess::request(operation);
  std::vector<std::string> names;
  for (const auto& buffer : request.buffers) names.push_back(buffer != nullptr ? name_of(*buffer) : "");
  const absl::StatusOr<grpc::ByteBuffer> message = request.encode(names, "", options);
  if (!message.ok()) return done(message.status());
  CallContext context;
  context.outlasts_breaks = true;
  connection.call(request.method, *message, options.call, context,
                  [done](absl::StatusOr<grpc::ByteBuffer> answer) {
                    done(answer.ok() ? decode_result(*answer, nullptr, {}, nullptr)
                                     : absl::StatusOr<Result>(answer.status()));
                  });
}

}  // namespace

void run_to_callback(Connection& connection, std::shared_ptr<SessionState> session,
                     const Operation& operation, const RunOptions& options,
                     std::function<void(absl::StatusOr<Result>)> done) {
  if (session == nullptr) return run_without_session(connection, operation, options, done);
  std::make_shared<SessionCall>(std::move(session), operation, options, std::move(done))->attempt();
}

std::future<absl::StatusOr<Result>> run_to_future(Connection& connection,
                                                  std::shared_ptr<SessionState> session,
                                                  const Operation& operation, const RunOptions& options) {
  const auto promise = std::make_shared<std::promise<absl::StatusOr<Result>>>();
  run_to_callback(connection, std::move(session), operation, options,
                  [promise](absl::StatusOr<Result> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

}  // namespace cumulus

#include "cli/job/server.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include "cumulus/errors.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(200);

bool serves(const Client& client) {
  const absl::StatusOr<Health> health = client.health();
  return health.ok() && *health == Health::kServing;
}

}  // namespace

absl::StatusOr<std::string> JobServer::target() {
  if (!address_.empty()) return address_;
  const std::lock_guard lock(mutex_);
  absl::Status status = launch();
  if (!status.ok()) return status;
  status = daemon_->wait_until_serving();
  if (status.ok()) return daemon_->target();
  daemon_ = nullptr;
  return status;
}

void JobServer::begin() {
  const std::lock_guard lock(mutex_);
  if (is_private()) launch().IgnoreError();  // target() says what is wrong
}

absl::Status JobServer::launch() {
  if (daemon_ != nullptr) return absl::OkStatus();
  auto daemon = PrivateDaemon::launch(backend_);
  if (!daemon.ok()) return daemon.status();
  daemon_ = *std::move(daemon);
  return absl::OkStatus();
}

ConnectOptions JobServer::options() const {
  ConnectOptions options;
  options.credentials = credentials_;
  if (is_private()) options.max_outage = absl::ZeroDuration();
  if (wait_) options.max_outage = *wait_;
  return options;
}

absl::StatusOr<Client> JobServer::connect(const Cancellation& interrupt, absl::Duration patience) {
  const absl::StatusOr<std::string> where = target();
  if (!where.ok()) return where.status();
  const absl::Time give_up = steady_now() + wait_.value_or(patience);
  while (true) {
    absl::StatusOr<Client> client = Client::connect(*where, options());
    if (refuses(client.status())) return client;
    const bool waits = steady_now() < give_up && !interrupt.cancelled();
    if (client.ok() && (!waits || serves(*client))) return client;
    if (!waits) {
      return absl::Status(client.status().code(),
                          absl::StrCat(std::string(client.status().message()),
                                       "; start cumulusd there, or leave --server out to use a private one"));
    }
    absl::SleepFor(kPause);
  }
}

bool refuses(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsInvalidArgument(status);
}

bool is_server_gone(const absl::Status& status) {
  return absl::IsUnavailable(status) && error_reason(status).empty();
}

std::string lost_server(const absl::Status& status) {
  return absl::StrCat(
      "the server ended, or cannot be reached any more; run the command again once it serves (",
      std::string(status.message()), ")");
}

}  // namespace cumulus::cli

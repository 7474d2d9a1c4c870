#include "cli/job/server.h"

namespace cumulus::cli {

absl::StatusOr<std::string> JobServer::target() {
  if (!address_.empty()) return address_;
  const std::lock_guard lock(mutex_);
  if (daemon_ == nullptr) {
    auto daemon = PrivateDaemon::start(backend_);
    if (!daemon.ok()) return daemon.status();
    daemon_ = *std::move(daemon);
  }
  return daemon_->target();
}

}  // namespace cumulus::cli

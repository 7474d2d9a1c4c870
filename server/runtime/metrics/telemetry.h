#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/runtime/logging.h"

namespace prometheus {
class Collectable;
}

namespace cumulus::server {

/// What the daemon's calls come to, for who looks after it: each finished call goes to the log, into the
/// metrics and, where it failed, among the recent errors. Thread-safe.
class Telemetry {
 public:
  /// The metrics of queues have a label for each of `principals`, at most kMaxPrincipals; the others are one.
  explicit Telemetry(const std::set<std::string>& principals);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  static constexpr std::size_t kMaxPrincipals = 100;

  /// Of every call, once.
  void finished(const CallRecord& call);
  /// The same without the log, whose line the caller writes (log_call) once it has answered.
  void count(const CallRecord& call);
  /// Of a call that did not begin: who made it may not, or nobody knows who that is.
  void refused(std::string_view method, std::string client, const absl::Status& why);
  /// An encoded image was not decoded.
  void decode_refused(const absl::Status& status);

  /// Of a call that failed.
  struct RecentError {
    absl::Time time;
    std::string method;
    std::string request_id;
    std::string principal;
    std::string trace_id;
    absl::StatusCode code = absl::StatusCode::kUnknown;
    std::string message;
  };
  /// The last calls that failed, the newest first; at most kRecentErrors.
  std::vector<RecentError> recent_errors() const;
  static constexpr std::size_t kRecentErrors = 50;

  /// All metrics in Prometheus's text format, and what `more` has at the moment.
  std::string text(const prometheus::Collectable* more = nullptr) const;

 private:
  struct Families;

  void keep_error(const CallRecord& call);

  const std::unique_ptr<Families> families_;
  mutable std::mutex errors_mutex_;
  std::deque<RecentError> errors_;
};

}  // namespace cumulus::server

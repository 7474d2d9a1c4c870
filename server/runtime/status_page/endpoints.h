#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/runtime/metrics/http_server.h"
#include "server/runtime/metrics/runtime_metrics.h"
#include "server/runtime/status_page/status_page.h"

namespace cumulus::server {

/// What is served over HTTP: the metrics, and the page to look at, each where it is configured.
class StatusEndpoints {
 public:
  /// INVALID_ARGUMENT naming an address that cannot be bound. `runtime` and what `sources` calls must outlive
  /// it.
  static absl::StatusOr<std::unique_ptr<StatusEndpoints>> start(Runtime& runtime,
                                                                RuntimeMetrics::Sources sources);

 private:
  StatusEndpoints(Runtime& runtime, RuntimeMetrics::Sources sources);
  absl::StatusOr<std::unique_ptr<HttpServer>> serve(std::string_view field, const std::string& text,
                                                    const std::string& path,
                                                    HttpAnswer (StatusEndpoints::*page)(const HttpRequest&));
  /// The answer to who may not see metrics, or what is admins' alone.
  std::optional<HttpAnswer> refused(const HttpRequest& request, bool metrics) const;
  HttpAnswer metrics_page(const HttpRequest& request);
  HttpAnswer status_page(const HttpRequest& request);
  /// Made anew at most ten times a second, however often it is asked for.
  std::string metrics_text();

  Runtime& runtime_;
  const RuntimeMetrics::Sources sources_;
  const RuntimeMetrics now_;
  StatusPage page_;
  std::mutex text_mutex_;
  absl::Time text_time_ = absl::InfinitePast();
  std::string text_;
  std::unique_ptr<HttpServer> metrics_;  // after what they serve
  std::unique_ptr<HttpServer> status_;
};

}  // namespace cumulus::server

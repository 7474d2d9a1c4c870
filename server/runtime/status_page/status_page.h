#pragma once

#include <absl/time/time.h>

#include <optional>
#include <string>

#include "proto/steady_time.h"
#include "server/runtime/metrics/http_server.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// The page to look at, and what it fetches: /status.json and thumbnails of images in memory. Sessions are
/// named by the first part of their names only, which is no handle.
class StatusPage {
 public:
  explicit StatusPage(Runtime& runtime) : runtime_(runtime) {}

  /// Whether thumbnails are shown: only where who looks may see everybody's images.
  void show_pictures(bool shown) { pictures_ = shown; }
  /// Nothing where there is no such page.
  std::optional<HttpAnswer> answer(const HttpRequest& request) const;

 private:
  std::string status_json() const;
  std::string sessions_json() const;
  std::string queues_json() const;
  std::string errors_json() const;
  std::string images_json(const SessionStore::View& view) const;
  std::string picture_key(const ResidentBuffer& buffer) const;
  std::optional<HttpAnswer> picture(const std::string& key) const;

  Runtime& runtime_;
  const absl::Time started_ = steady_now();
  bool pictures_ = false;
};

}  // namespace cumulus::server

#include "server/runtime/status_page/status_page.h"

#include <absl/random/random.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "proto/steady_time.h"
#include "server/pipeline/text.h"
#include "server/runtime/logging.h"
#include "server/runtime/status_page/page.h"
#include "server/runtime/status_page/thumbnail.h"
#include "server/version.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kMaxSessions = 100;
constexpr std::size_t kMaxFlows = 100;
constexpr std::size_t kImagesOfASession = 4;
constexpr std::string_view kPicturePath = "/pictures/";

std::string json_string(std::string_view text) { return concat("\"", json_escaped(text), "\""); }

std::string number(double value) { return absl::StrFormat("%.6g", value); }

std::string joined(const std::vector<std::string>& objects) {
  std::string text = "[";
  for (const std::string& object : objects) text += (text.size() > 1 ? "," : "") + object;
  return text + "]";
}

/// "sessions/6f0d9a52-...": the first part of the UUID.
std::string short_name(std::string_view name) {
  const std::string_view id = name.substr(name.find('/') + 1);
  return std::string(id.substr(0, id.find('-')));
}

/// The page, whose script alone may run: what clients send could otherwise become one.
HttpAnswer page() {
  absl::BitGen random;
  const std::string nonce = absl::StrFormat("%016x%016x", absl::Uniform<std::uint64_t>(random),
                                            absl::Uniform<std::uint64_t>(random));
  return {.type = "text/html; charset=utf-8",
          .body = absl::StrReplaceAll(to_absl_view(kStatusPage), {{"NONCE", nonce}}),
          .headers = {{"Content-Security-Policy",
                       concat("default-src 'none'; script-src 'nonce-", nonce, "'; style-src 'nonce-", nonce,
                              "'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                              "frame-ancestors 'none'")},
                      {"Referrer-Policy", "no-referrer"}}};
}

}  // namespace

std::optional<HttpAnswer> StatusPage::answer(const HttpRequest& request) const {
  if (request.path == "/") return page();
  if (request.path == "/status.json") return HttpAnswer{.type = "application/json", .body = status_json()};
  if (request.path.rfind(kPicturePath, 0) == 0) return picture(request.path.substr(kPicturePath.size()));
  return std::nullopt;
}

std::string StatusPage::status_json() const {
  std::vector<std::string> devices;
  for (const DeviceSlot& slot : runtime_.devices) {
    const Device& device = *slot.device;
    devices.push_back(concat("{\"name\":", json_string(device.name()),
                             ",\"model\":", json_string(device.model()),
                             ",\"backend\":", json_string(device.backend()), "}"));
  }
  return concat("{\"version\":", json_string(kServerVersion),
                ",\"instance\":", json_string(runtime_.instance),
                ",\"uptime\":", number(absl::ToDoubleSeconds(steady_now() - started_)),
                ",\"devices\":", joined(devices), ",\"sessions\":", sessions_json(),
                ",\"queues\":", queues_json(), ",\"errors\":", errors_json(), "}");
}

std::string StatusPage::sessions_json() const {
  std::vector<std::pair<std::size_t, SessionStore::View>> views;
  for (SessionStore::View& view : runtime_.sessions.views(pictures_ ? kImagesOfASession : 0))
    views.emplace_back(view.session->quota->reserved_bytes(), std::move(view));
  std::stable_sort(views.begin(), views.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (views.size() > kMaxSessions) views.resize(kMaxSessions);
  const absl::Time now = steady_now();
  std::vector<std::string> objects;
  for (const auto& [used, view] : views) {
    const Session& session = *view.session;
    objects.push_back(concat("{\"name\":", json_string(short_name(session.name)),
                             ",\"principal\":", json_string(session.owner.name),
                             ",\"device\":", json_string(session.slot->device->name()), ",\"used\":", used,
                             ",\"quota\":", session.quota->limit_bytes(), ",\"buffers\":", view.buffers,
                             ",\"expires\":", number(absl::ToDoubleSeconds(view.expire_time - now)),
                             ",\"images\":", images_json(view), "}"));
  }
  return joined(objects);
}

std::string StatusPage::images_json(const SessionStore::View& view) const {
  std::vector<std::string> objects;
  for (const BufferHandle& buffer : view.newest) {
    if (!is_picture(buffer->shape)) continue;
    objects.push_back(concat("{\"key\":", json_string(picture_key(*buffer)),
                             ",\"shape\":", json_string(buffer->shape.text()), "}"));
  }
  return joined(objects);
}

std::string StatusPage::queues_json() const {
  std::vector<std::string> objects;
  for (const DeviceSlot& slot : runtime_.devices) {
    for (const DeviceQueue::FlowView& flow : slot.queue->flow_views(kMaxFlows)) {
      objects.push_back(concat("{\"device\":", json_string(slot.device->name()),
                               ",\"principal\":", json_string(flow.principal), ",\"class\":\"",
                               flow.job_class == JobClass::kBatch ? "batch" : "interactive",
                               "\",\"waiting\":", flow.waiting, ",\"running\":", flow.running,
                               ",\"seconds\":", number(flow.waiting_cost), "}"));
    }
  }
  return joined(objects);
}

std::string StatusPage::errors_json() const {
  const absl::Time now = steady_now();
  std::vector<std::string> objects;
  for (const Telemetry::RecentError& error : runtime_.telemetry.recent_errors()) {
    objects.push_back(concat(
        "{\"ago\":", number(absl::ToDoubleSeconds(now - error.time)), ",\"method\":",
        json_string(error.method), ",\"code\":", json_string(absl::StatusCodeToString(error.code)),
        ",\"principal\":", json_string(error.principal), ",\"request\":", json_string(error.request_id),
        ",\"trace\":", json_string(error.trace_id), ",\"message\":", json_string(error.message), "}"));
  }
  return joined(objects);
}

std::string StatusPage::picture_key(const ResidentBuffer& buffer) const {
  return absl::StrFormat("%016x", std::hash<std::string>()(runtime_.instance + buffer.name));
}

std::optional<HttpAnswer> StatusPage::picture(const std::string& key) const {
  if (!pictures_) return std::nullopt;
  for (const SessionStore::View& view : runtime_.sessions.views(kImagesOfASession)) {
    for (const BufferHandle& buffer : view.newest) {
      if (!is_picture(buffer->shape) || picture_key(*buffer) != key) continue;
      std::string file = thumbnail(*view.session->slot->device, buffer);
      if (file.empty()) return HttpAnswer{.code = 503, .body = "the device gave no pixels in time\n"};
      return HttpAnswer{.type = "image/bmp", .body = std::move(file)};
    }
  }
  return std::nullopt;
}

}  // namespace cumulus::server

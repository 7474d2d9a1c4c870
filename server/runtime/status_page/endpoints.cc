#include "server/runtime/status_page/endpoints.h"

#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <spdlog/spdlog.h>

#include <string_view>
#include <utility>
#include <vector>

#include "proto/steady_time.h"
#include "server/pipeline/text.h"
#include "server/runtime/connections/acceptor.h"
#include "server/runtime/listen_address.h"

namespace cumulus::server {
namespace {

constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

HttpAnswer not_found_page() { return {.code = 404, .body = "there is no such page\n"}; }

/// Whether a request that came to a loopback address means it: a page of the web whose name was pointed there
/// has another host in its requests.
bool means_loopback(std::string_view host) {
  if (host.empty()) return true;
  const std::size_t bracket = host.find(']');
  const std::size_t colon = host.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  const auto address = parse_listen_address(has_port ? std::string(host) : concat(host, ":80"));
  return address.ok() && address->is_loopback() && !address->is_unix();
}

/// As a call of gRPC's has it. A browser asks its user for a name and a password, which is the token.
std::string bearer_of(std::string_view authorization) {
  constexpr std::string_view kBasic = "Basic ";
  std::string user_and_token;
  if (!absl::StartsWithIgnoreCase(to_absl_view(authorization), to_absl_view(kBasic)) ||
      !absl::Base64Unescape(to_absl_view(authorization.substr(kBasic.size())), &user_and_token))
    return std::string(authorization);
  return concat("Bearer ", user_and_token.substr(user_and_token.find(':') + 1));
}

}  // namespace

StatusEndpoints::StatusEndpoints(Runtime& runtime, RuntimeMetrics::Sources sources)
    : runtime_(runtime), sources_(sources), now_(runtime, std::move(sources)), page_(runtime) {}

absl::StatusOr<std::unique_ptr<StatusEndpoints>> StatusEndpoints::start(Runtime& runtime,
                                                                        RuntimeMetrics::Sources sources) {
  std::unique_ptr<StatusEndpoints> endpoints(new StatusEndpoints(runtime, std::move(sources)));
  const Configuration::Observability& addresses = runtime.configuration.observability;
  auto metrics = endpoints->serve("observability.metrics", addresses.metrics, "/metrics",
                                  &StatusEndpoints::metrics_page);
  if (!metrics.ok()) return metrics.status();
  endpoints->metrics_ = *std::move(metrics);
  // Where nobody says who looks at the page, only who is on this machine sees what is in memory.
  const auto status_address = parse_listen_address(addresses.status);
  endpoints->page_.show_pictures(runtime.identity->required() ||
                                 (status_address.ok() && status_address->is_loopback()));
  auto status =
      endpoints->serve("observability.status", addresses.status, "/", &StatusEndpoints::status_page);
  if (!status.ok()) return status.status();
  endpoints->status_ = *std::move(status);
  return endpoints;
}

absl::StatusOr<std::unique_ptr<HttpServer>> StatusEndpoints::serve(
    std::string_view field, const std::string& text, const std::string& path,
    HttpAnswer (StatusEndpoints::*page)(const HttpRequest&)) {
  if (text.empty()) return nullptr;
  absl::StatusOr<ListenAddress> address = parse_listen_address(text);
  if (!address.ok()) return address.status();
  int port = 0;
  absl::StatusOr<std::vector<Descriptor>> listeners = listen_at(*address, port, field);
  if (!listeners.ok()) return listeners.status();
  spdlog::info("pages at http://{}{}", address->with_port(port), path);
  const bool loopback = address->is_loopback();
  return std::make_unique<HttpServer>(*std::move(listeners), HttpServer::Limits(),
                                      [this, page, loopback](const HttpRequest& request) -> HttpAnswer {
                                        if (loopback && !means_loopback(request.host))
                                          return {.code = 421,
                                                  .body = "use localhost, or the address itself\n"};
                                        return (this->*page)(request);
                                      });
}

std::string StatusEndpoints::metrics_text() {
  constexpr absl::Duration kFresh = absl::Milliseconds(100);
  const std::lock_guard lock(text_mutex_);
  const absl::Time now = steady_now();
  if (now - text_time_ >= kFresh) {
    text_ = runtime_.telemetry.text(&now_);
    text_time_ = now;
  }
  return text_;
}

std::optional<HttpAnswer> StatusEndpoints::refused(const HttpRequest& request, bool metrics) const {
  if (!runtime_.identity->required()) return std::nullopt;
  const absl::StatusOr<Principal> caller =
      runtime_.identity->resolve_header(bearer_of(request.authorization), "http");
  if (!caller.ok()) {
    return HttpAnswer{.code = 401,
                      .body = "send a token (cumulusd token) as Authorization: Bearer, or as the password\n",
                      .headers = {{"WWW-Authenticate", "Basic realm=\"cumulus\""}}};
  }
  if (caller->role == Role::kAdmin || (metrics && caller->role == Role::kMetrics)) return std::nullopt;
  return HttpAnswer{
      .code = 403,
      .body = metrics ? "use a token of role metrics or admin\n" : "use a token of role admin\n"};
}

HttpAnswer StatusEndpoints::metrics_page(const HttpRequest& request) {
  if (request.path == "/metrics") {
    if (std::optional<HttpAnswer> refusal = refused(request, true)) return *std::move(refusal);
    return {.type = kMetricsType, .body = metrics_text()};
  }
  if (request.path == "/healthz") return {.body = "alive\n"};
  if (request.path == "/readyz") {
    const bool serving = sources_.serving && sources_.serving();
    return {.code = serving ? 200 : 503, .body = serving ? "serving\n" : "not serving\n"};
  }
  if (request.path == "/") return {.body = "/metrics\n/healthz\n/readyz\n"};
  return not_found_page();
}

HttpAnswer StatusEndpoints::status_page(const HttpRequest& request) {
  const bool metrics = request.path == "/metrics";
  if (std::optional<HttpAnswer> refusal = refused(request, metrics)) return *std::move(refusal);
  if (metrics) return {.type = kMetricsType, .body = metrics_text()};
  return page_.answer(request).value_or(not_found_page());
}

}  // namespace cumulus::server

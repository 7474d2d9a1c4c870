#include <absl/strings/ascii.h>
#include <absl/strings/match.h>

#include <algorithm>

#include "server/pipeline/text.h"
#include "server/runtime/metrics/http_server.h"

namespace cumulus::server {
namespace {

constexpr int kBadRequest = 400;
constexpr int kMethodNotAllowed = 405;
constexpr int kVersionNotSupported = 505;

/// Takes what comes before `end` from `text`; all where `end` is not there.
std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + end.size());
  return part;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

ParsedHead parse_http_head(std::string_view head) {
  std::string_view line = take_until(head, "\r\n");
  const std::string_view method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  if (line.substr(0, 5) != "HTTP/" || target.empty() || target.front() != '/' || !is_printable(target))
    return {.error = kBadRequest};
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return {.error = kVersionNotSupported};
  if (method != "GET" && method != "HEAD") return {.error = kMethodNotAllowed};
  ParsedHead parsed;
  parsed.head_only = method == "HEAD";
  parsed.request.path = std::string(take_until(target, "?"));
  while (!head.empty()) {
    std::string_view field = take_until(head, "\r\n");
    const std::string_view name = take_until(field, ":");
    if (name.empty() || !is_printable(name)) return {.error = kBadRequest};
    if (absl::EqualsIgnoreCase(to_absl_view(name), "host")) parsed.request.host = std::string(trimmed(field));
    if (absl::EqualsIgnoreCase(to_absl_view(name), "authorization"))
      parsed.request.authorization = std::string(trimmed(field));
  }
  return parsed;
}

}  // namespace cumulus::server

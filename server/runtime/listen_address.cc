#include "server/runtime/listen_address.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <arpa/inet.h>
#include <sys/un.h>

#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr int kMaxPort = 65535;

absl::Status wrong(std::string_view text, std::string_view what) {
  return absl::InvalidArgumentError(
      concat("'", text, "' ", what, "; use HOST:PORT, [HOST6]:PORT or unix:PATH"));
}

absl::StatusOr<ListenAddress> parse_unix(std::string_view text) {
  ListenAddress address{std::string(text), std::string(text.substr(kUnixScheme.size())), "", 0};
  if (address.socket_path.empty()) return wrong(text, "names no file");
  if (address.socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    return wrong(text,
                 concat("has a path of ", address.socket_path.size(),
                        " bytes, where a Unix socket's has at most ", sizeof(sockaddr_un::sun_path) - 1));
  }
  return address;
}

}  // namespace

bool ListenAddress::is_loopback() const {
  if (is_unix() || host == "localhost") return true;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  in_addr v4{};
  constexpr std::uint32_t kLoopbackNetwork = 127;
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == kLoopbackNetwork;
}

std::string ListenAddress::with_port(int bound_port) const {
  return text.front() == '[' ? concat("[", host, "]:", bound_port) : concat(host, ":", bound_port);
}

absl::StatusOr<ListenAddress> parse_listen_address(std::string_view text) {
  if (text.substr(0, kUnixScheme.size()) == kUnixScheme) return parse_unix(text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong(text, "has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  ListenAddress address{std::string(text), "", "", 0};
  if (!absl::SimpleAtoi(to_absl_view(port), &address.port) || address.port < 0 || address.port > kMaxPort) {
    return wrong(text, concat("has the port '", port, "', which is no number from 0 to ", kMaxPort));
  }
  if (host.empty()) return wrong(text, "has no host");
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  address.host = std::string(host);
  in6_addr v6{};
  const bool is_v6 = inet_pton(AF_INET6, address.host.c_str(), &v6) == 1;
  if (bracketed != is_v6)
    return wrong(text,
                 bracketed ? "has no IPv6 address in its brackets" : "lacks the brackets of an IPv6 address");
  if (!is_v6 && host.find_first_of(":[]/ ") != std::string_view::npos)
    return wrong(text, "has no host that can be one");
  return address;
}

}  // namespace cumulus::server

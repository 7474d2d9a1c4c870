#include "server/runtime/principal.h"

namespace cumulus::server {
namespace {

/// What follows `prefix` in `text`; empty where it does not begin so.
std::string_view after(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : std::string_view();
}

/// "[::1]:50000" without port and brackets, which gRPC percent-encodes.
std::string_view host_of_ipv6(std::string_view address) {
  for (const std::string_view bracket : {"[", "%5B", "%5b"}) {
    if (const std::string_view rest = after(address, bracket); !rest.empty()) address = rest;
  }
  return address.substr(0, address.find_first_of("]%"));
}

}  // namespace

std::string principal_name(std::string_view peer) {
  if (const std::string_view address = after(peer, "ipv4:"); !address.empty())
    return std::string(address.substr(0, address.rfind(':')));
  if (const std::string_view address = after(peer, "ipv6:"); !address.empty())
    return std::string(host_of_ipv6(address));
  return std::string(kLocalPrincipal);
}

std::set<std::string> Principals::names() const {
  std::set<std::string> names;
  for (const auto& [name, limits] : overrides_) names.insert(name);
  return names;
}

Principal Principals::resolve(std::string_view peer) const {
  std::string name = principal_name(peer);
  const PrincipalLimits limits = limits_of(name);
  return {.name = std::move(name), .limits = limits};
}

Principal Principals::proven(std::string name, Role role) const {
  const PrincipalLimits limits = limits_of(name);
  return {.name = std::move(name), .limits = limits, .role = role, .proven = true};
}

PrincipalLimits Principals::limits_of(std::string_view name) const {
  const auto found = overrides_.find(name);
  return found != overrides_.end() ? found->second : defaults_;
}

}  // namespace cumulus::server

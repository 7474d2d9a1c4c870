#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace cumulus::server {

/// What one principal may take of the server.
struct PrincipalLimits {
  std::size_t max_queue_depth = 1024;  // calls that wait for one device
  double weight = 1;                   // of the principal's share of a device
  std::size_t max_sessions = 64;
  std::size_t max_transfers = 100;      // uploads and downloads at a time
  std::size_t max_upload_bytes = 0;     // of uploads that have begun; 0: half of the device's budget
  std::size_t session_quota_bytes = 0;  // of each session; 0: as the server allows

  /// Of a session where the server allows `servers`.
  std::size_t session_quota_within(std::size_t servers) const {
    return session_quota_bytes == 0 ? servers : std::min(session_quota_bytes, servers);
  }
};

/// What a principal may do. kUser: the RPCs of cumulus.v1, on its own sessions. kAdmin: also what shows the
/// inside of the server (reflection, channelz, the status page). kMetrics: read metrics, and nothing else.
enum class Role { kUser, kAdmin, kMetrics };

/// Who asks: resolved once per call, and carried by whatever the call takes. Queues, sessions and limits
/// count by its name.
struct Principal {
  std::string name;
  PrincipalLimits limits;
  Role role = Role::kUser;
  /// By a certificate, a token, or the rights to this machine's socket. Else the name is an address, which
  /// many may share and anybody behind it may use.
  bool proven = false;
};

/// Whether `caller` may use what `owner` made. Of callers without proof the name of a session, which nobody
/// can guess, is the only key.
inline bool may_use(const Principal& owner, const Principal& caller) {
  return owner.proven == caller.proven && (!owner.proven || owner.name == caller.name);
}

/// The principals that the configuration knows, and what all others may take.
class Principals {
 public:
  using Overrides = std::map<std::string, PrincipalLimits, std::less<>>;

  Principals() = default;
  Principals(const PrincipalLimits& defaults, Overrides overrides)
      : defaults_(defaults), overrides_(std::move(overrides)) {}

  const PrincipalLimits& defaults() const { return defaults_; }
  /// Those that the configuration names.
  std::set<std::string> names() const;
  /// Who is behind a connection. `peer` is as gRPC has it: "ipv4:127.0.0.1:50000", "unix:".
  Principal resolve(std::string_view peer) const;
  /// Who has shown that this is its name.
  Principal proven(std::string name, Role role) const;

 private:
  PrincipalLimits limits_of(std::string_view name) const;

  PrincipalLimits defaults_;
  Overrides overrides_;
};

/// What principal_name says where there is no address.
inline constexpr std::string_view kLocalPrincipal = "local";

/// The peer's address without its port; "local" for a Unix socket and a channel inside the process, behind
/// which gRPC does not say who is.
std::string principal_name(std::string_view peer);

}  // namespace cumulus::server

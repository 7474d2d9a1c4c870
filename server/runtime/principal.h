#pragma once

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
  std::size_t max_queue_depth = 256;  // calls that wait for one device
  double weight = 1;                  // of the principal's share of a device
  std::size_t max_sessions = 64;
  std::size_t max_transfers = 100;   // uploads and downloads at a time
  std::size_t max_upload_bytes = 0;  // of uploads that have begun; 0: half of the device's budget
};

/// Who asks: resolved once per call, and carried by whatever the call takes. Queues, sessions and limits
/// count by its name.
struct Principal {
  std::string name;
  PrincipalLimits limits;
};

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

 private:
  PrincipalLimits defaults_;
  Overrides overrides_;
};

/// The peer's address without its port; "local" for a Unix socket and a channel inside the process, behind
/// which gRPC does not say who is.
std::string principal_name(std::string_view peer);

}  // namespace cumulus::server

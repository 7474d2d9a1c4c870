#pragma once

#include <string>
#include <string_view>

namespace cumulus::server {

/// The address of a gRPC peer without its port: "ipv4:10.0.0.7" of "ipv4:10.0.0.7:50312". All that come over
/// Unix sockets are one.
inline std::string peer_host(std::string_view peer) {
  if (peer.rfind("unix:", 0) == 0) return "unix";
  const bool has_port = peer.rfind("ipv4:", 0) == 0 || peer.rfind("ipv6:", 0) == 0;
  return std::string(has_port ? peer.substr(0, peer.rfind(':')) : peer);
}

}  // namespace cumulus::server

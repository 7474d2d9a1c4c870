#pragma once

#include "server/runtime/connections/frame_guard.h"

namespace cumulus::server {

/// From now on a guard reads along what gRPC decrypts of each client's TLS connection: this program's
/// SSL_read, which gRPC's library finds before OpenSSL's, fails once the guard has a problem, and gRPC closes
/// the connection.
void guard_tls(const FrameGuard::Limits& limits);

}  // namespace cumulus::server

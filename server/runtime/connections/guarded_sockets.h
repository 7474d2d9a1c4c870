#pragma once

#include <sys/types.h>

#include <string>

#include "server/runtime/connections/frame_guard.h"

namespace cumulus::server {

/// From now on a guard reads along what gRPC reads from this connection: this program's recvmsg, which gRPC's
/// library finds before the C library's, says that the connection is broken once the guard has a problem.
/// `inode` is the socket's, which tells it from a later one of its number; `peer` is for the log.
void guard_socket(int socket, ino_t inode, std::string peer, const FrameGuard::Limits& limits);
/// Of a connection that is closed.
void forget_guard(int socket, ino_t inode);

}  // namespace cumulus::server

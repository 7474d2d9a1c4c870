#pragma once

namespace cumulus::server {

/// From now on this process may compute, manage its memory, and use the sockets and files it has open:
/// opening anything fails with EACCES, and every other system call ends the process with SIGSYS. No program
/// that it starts could get rights. False where the kernel cannot.
bool confine_process();

}  // namespace cumulus::server

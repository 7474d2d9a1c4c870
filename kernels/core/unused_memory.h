#pragma once

namespace cumulus {

/// Gives the host memory that allocators keep for reuse, and nobody has, back to the machine. Takes some
/// milliseconds, and what comes next pays for fresh pages: for a program that has become idle.
void release_unused_host_memory();

}  // namespace cumulus

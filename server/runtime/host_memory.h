#pragma once

#include <cstdint>
#include <string>

namespace cumulus::server {

/// The memory that this process may have: the machine's, or less where a control group (version 1 or 2) that
/// it is in, or one around that, has a limit. `root` is "" but for tests: what /proc and /sys are below.
std::int64_t available_memory_bytes(const std::string& root = "");

}  // namespace cumulus::server

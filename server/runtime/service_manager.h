#pragma once

#include <string_view>

namespace cumulus::server {

/// Tells the service manager what the process does ("READY=1", as sd_notify(3) has it), where one started it
/// and waits for that: `systemctl restart` then returns once the server serves.
void tell_service_manager(std::string_view state);

}  // namespace cumulus::server

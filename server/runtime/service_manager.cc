#include "server/runtime/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "server/runtime/descriptor.h"

namespace cumulus::server {

void tell_service_manager(std::string_view state) {
  const char* const named = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (named == nullptr) return;
  const std::string_view path = named;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) return;
  std::memcpy(name.sun_path, path.data(), path.size());
  if (path.front() == '@') name.sun_path[0] = '\0';  // of the abstract namespace
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // A manager that does not listen gives up on the process by itself, and says so.
  if (socket)
    (void)::sendto(socket.number(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&name), size);
}

}  // namespace cumulus::server

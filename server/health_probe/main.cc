// cumulus_health: asks a daemon's metrics address whether it is ready, for health checks of containers.
// Linked statically, and to nothing but the C library: it runs where there is no shell and no library.
//   cumulus_health [ADDRESS:PORT]     127.0.0.1:9464 where none is given; an IPv4 address
// Exits with 0 where /readyz says 200 within three seconds, and with 1 otherwise.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kSeconds = 3;

int fail(const std::string& what) {
  std::fprintf(stderr, "cumulus_health: %s\n", what.c_str());
  return 1;
}

int ask(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in name{};
  name.sin_family = AF_INET;
  char* end = nullptr;
  const long port = colon == std::string::npos ? 0 : std::strtol(address.c_str() + colon + 1, &end, 10);
  if (port < 1 || port > 65535 || *end != '\0' ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr) != 1)
    return fail("'" + address + "' is no IPv4 address with a port, such as 127.0.0.1:9464");
  name.sin_port = htons(static_cast<in_port_t>(port));
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{kSeconds, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0)
    return fail(address + ": " + std::strerror(errno));
  const std::string request = "GET /readyz HTTP/1.1\r\nHost: " + address + "\r\nConnection: close\r\n\r\n";
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    return fail(address + ": " + std::strerror(errno));
  char answer[64] = "";
  const ssize_t count = ::recv(socket, answer, sizeof(answer) - 1, 0);
  const std::string line(answer, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (line.rfind("HTTP/1.1 200 ", 0) == 0) return 0;
  return fail(address + " is not ready: " + line.substr(0, line.find('\r')));
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(kSeconds + 1);
  if (argc > 2) return fail("takes one address, such as 127.0.0.1:9464");
  return ask(argc == 2 ? argv[1] : "127.0.0.1:9464");
}

#include "server/runtime/connections/watchdog.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proto/steady_time.h"
#include "server/runtime/descriptor.h"

namespace cumulus::server {
namespace {

/// A client's first words: the preface, and settings of which there are none.
constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);

/// A TLS client's first words; gRPC would log a complaint about anything else.
std::string client_hello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), &SSL_free);
  BIO* const said = BIO_new(BIO_s_mem());
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), said);  // which are the client's from now on
  (void)SSL_connect(client.get());                        // and waits for an answer
  ERR_clear_error();
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(said, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

bool wait_for(const Descriptor& socket, short events, absl::Time end) {
  pollfd entry{socket.number(), events, 0};
  const auto left = std::max<std::int64_t>(0, absl::ToInt64Milliseconds(end - steady_now()));
  return ::poll(&entry, 1, static_cast<int>(left)) > 0;
}

bool connect_to(const Descriptor& socket, const sockaddr* name, socklen_t size, absl::Time end) {
  if (::connect(socket.number(), name, size) == 0) return true;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, end)) return false;
  int error = 0;
  socklen_t error_size = sizeof(error);
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &error_size) == 0 && error == 0;
}

/// `greeting`: what a client says first, and a server answers.
bool answers_at(const sockaddr* name, socklen_t size, std::string_view greeting, absl::Time end) {
  const Descriptor socket(::socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // Without a descriptor this process cannot know.
  if (!socket) return true;
  if (!connect_to(socket, name, size, end)) return false;
  if (::send(socket.number(), greeting.data(), greeting.size(), MSG_NOSIGNAL) < 0) return true;
  // Settings, or the end of a connection that a full server refuses.
  return wait_for(socket, POLLIN, end);
}

/// A server that listens everywhere is reached at the loopback address.
std::string reachable(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

}  // namespace

bool answers(const ListenAddress& address, absl::Duration limit, bool tls) {
  const absl::Time end = steady_now() + limit;
  if (address.is_unix()) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.socket_path.c_str(), address.socket_path.size() + 1);
    return answers_at(reinterpret_cast<const sockaddr*>(&name), sizeof(name), kPreface, end);
  }
  const std::string greeting = tls ? client_hello() : std::string(kPreface);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* names = nullptr;
  const std::string port = std::to_string(address.port);
  if (::getaddrinfo(reachable(address.host).c_str(), port.c_str(), &wanted, &names) != 0) return true;
  bool any = false;
  for (const addrinfo* name = names; name != nullptr && !any; name = name->ai_next)
    any = answers_at(name->ai_addr, name->ai_addrlen, greeting, end);
  ::freeaddrinfo(names);
  return any;
}

Watchdog::Watchdog(std::vector<ListenAddress> addresses, const Limits& limits,
                   std::function<void(const std::string&)> deaf, std::function<std::uint64_t()> calls)
    : addresses_(std::move(addresses)),
      limits_(limits),
      deaf_(std::move(deaf)),
      calls_(std::move(calls)),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Watchdog::sleep(absl::Duration time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, absl::ToChronoNanoseconds(time), [this] { return stopping_; });
}

void Watchdog::run() {
  std::vector<int> failures(addresses_.size(), 0);
  absl::Duration pause = limits_.interval;
  std::uint64_t calls = calls_();
  while (sleep(pause)) {
    bool quiet = calls == calls_();
    calls = calls_();
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      failures[i] = answers(addresses_[i], limits_.interval, limits_.tls) ? 0 : failures[i] + 1;
      if (failures[i] == limits_.failures) return deaf_(addresses_[i].text);
      quiet = quiet && failures[i] == 0;
    }
    pause = quiet ? std::min(2 * pause, limits_.quiet_intervals * limits_.interval) : limits_.interval;
  }
}

}  // namespace cumulus::server

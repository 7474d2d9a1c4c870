#include "server/runtime/connections/acceptor.h"

#include <absl/time/clock.h>
#include <arpa/inet.h>
#include <linux/tcp.h>  // glibc's lacks the bytes received
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/text.h"
#include "server/runtime/connections/guarded_sockets.h"
#include "server/runtime/principal.h"

namespace cumulus::server {
namespace {

// Descriptors that connections leave to decoders, logs and files.
constexpr rlim_t kReserve = 64;
// Of them, what connections may take while the places of silent ones come free.
constexpr int kOverlap = 32;
// Silent connections that are closed where descriptors run out.
constexpr std::size_t kSilentAtOnce = 16;

// gRPC's name of every client behind a Unix socket: for their calls they are one.
constexpr char kUnixPeer[] = "unix:";

bool any_client(const std::string& /*name*/) { return true; }

/// As gRPC names the other end.
std::string peer_of(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return concat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return kUnixPeer;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return concat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return concat("ipv6:%5B", text, "%5D:", ntohs(v6.sin6_port));
}

/// Whether there is anything to read at one of `entries` before `end`.
bool poll_until(std::vector<pollfd>& entries, absl::Time end) {
  int milliseconds = -1;
  if (end != absl::InfiniteFuture()) {
    const absl::Duration left = absl::Ceil(end - steady_now(), absl::Milliseconds(1));
    milliseconds = static_cast<int>(std::max<std::int64_t>(0, absl::ToInt64Milliseconds(left)));
  }
  return ::poll(entries.data(), entries.size(), milliseconds) > 0;
}

/// 0: it is no open socket.
ino_t inode_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/// Whether nothing has come over it; of TCP.
bool is_silent(int connection) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  return ::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_bytes_received == 0;
}

/// Whether the peer has closed its end; gRPC then closes ours, when it comes to it.
bool is_left(int connection) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  constexpr int kCloseWait = 8;  // TCP_CLOSE_WAIT, which the kernel's header does not name
  return ::getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == kCloseWait;
}

/// From this number on connections are closed rather than taken.
int first_reserved() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<int>::max();
  const rlim_t limit = std::min<rlim_t>(files.rlim_cur, std::numeric_limits<int>::max());
  return static_cast<int>(limit > 2 * kReserve ? limit - kReserve : limit / 2);
}

absl::Status cannot_listen(std::string_view field, const ListenAddress& address, std::string_view why) {
  return absl::InvalidArgumentError(concat(
      field, ": cannot bind ", address.text, " (", why,
      "); it is in use, is not an address of this machine, or is a port (below 1024) that takes rights"));
}

absl::StatusOr<Descriptor> listen_on(std::string_view field, const ListenAddress& address,
                                     const sockaddr* name, socklen_t size) {
  constexpr int kBacklog = 4096;
  Descriptor socket(::socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  const int no = 0;
  if (socket) ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (socket && name->sa_family == AF_INET6)
    ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (!socket || ::bind(socket.number(), name, size) != 0 || ::listen(socket.number(), kBacklog) != 0)
    return cannot_listen(field, address, std::strerror(errno));
  return socket;
}

absl::StatusOr<Descriptor> listen_on_file(std::string_view field, const ListenAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.socket_path.c_str(), address.socket_path.size() + 1);
  const mode_t mask = ::umask(0177);  // its owner's alone
  absl::StatusOr<Descriptor> socket =
      listen_on(field, address, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  ::umask(mask);
  return socket;
}

void set_port(sockaddr* name, int port) {
  const in_port_t number = htons(static_cast<std::uint16_t>(port));
  if (name->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(name)->sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in*>(name)->sin_port = number;
  }
}

int port_of(const Descriptor& socket) {
  sockaddr_in6 name{};  // the port of IPv4 lies in the same place
  socklen_t size = sizeof(name);
  return ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&name), &size) == 0
             ? ntohs(name.sin6_port)
             : 0;
}

}  // namespace

absl::StatusOr<std::vector<Descriptor>> listen_at(const ListenAddress& address, int& port,
                                                  std::string_view field) {
  std::vector<Descriptor> sockets;
  if (address.is_unix()) {
    absl::StatusOr<Descriptor> socket = listen_on_file(field, address);
    if (!socket.ok()) return socket.status();
    sockets.push_back(*std::move(socket));
    return sockets;
  }
  addrinfo wanted{};
  wanted.ai_flags = AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* names = nullptr;
  const int failure = ::getaddrinfo(address.host.c_str(), nullptr, &wanted, &names);
  if (failure != 0) return cannot_listen(field, address, ::gai_strerror(failure));
  absl::Status last;
  port = address.port;
  for (const addrinfo* name = names; name != nullptr; name = name->ai_next) {
    set_port(name->ai_addr, port);
    absl::StatusOr<Descriptor> socket = listen_on(field, address, name->ai_addr, name->ai_addrlen);
    if (!socket.ok()) {
      last = socket.status();
      continue;
    }
    port = port_of(*socket);
    sockets.push_back(*std::move(socket));
  }
  ::freeaddrinfo(names);
  // Of a name with several addresses, one may be in use or of a family that the machine has not.
  if (sockets.empty()) return last;
  return sockets;
}

Acceptor::Acceptor(std::vector<Descriptor> listeners, const ConnectionLimits& limits,
                   std::shared_ptr<OpenCalls> calls, Hand hand)
    : listeners_(std::move(listeners)),
      limits_(limits),
      calls_(std::move(calls)),
      hand_(std::move(hand)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Acceptor::~Acceptor() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.number(), &one, sizeof(one));
  thread_.join();
}

void Acceptor::run() {
  // Connections that were there at many looks are looked at less often.
  constexpr absl::Duration kFirstCheck = absl::Milliseconds(500);
  constexpr absl::Duration kLastCheck = absl::Seconds(2);
  std::vector<pollfd> entries;
  for (const Descriptor& listener : listeners_) entries.push_back({listener.number(), POLLIN, 0});
  entries.push_back({wake_.number(), POLLIN, 0});
  absl::Duration interval = kFirstCheck;
  absl::Time next_check = absl::InfiniteFuture();
  while (true) {
    const bool any = poll_until(entries, next_check);
    if (entries.back().revents != 0) return;
    for (const pollfd& entry : entries) {
      if (entry.revents != 0) accept_some(entry.fd);
    }
    const absl::Time now = steady_now();
    if (any) {
      interval = kFirstCheck;
      next_check = std::min(next_check, now + interval);
    }
    if (now < next_check) continue;
    remove_closed();
    const absl::Time next_stalled = close_stalled(now);
    interval = std::min(2 * interval, kLastCheck);
    next_check = clients_.empty() ? absl::InfiniteFuture()
                                  : std::clamp(next_stalled, now + kFirstCheck, now + interval);
    std::size_t connections = 0;
    for (const auto& [client, own] : clients_) connections += own.size();
    calls_->count_connections(connections);
  }
}

void Acceptor::accept_some(int listener) {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce; ++i) {
    Descriptor connection(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      take(listener, std::move(connection));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      close_silent(kSilentAtOnce, any_client);
      absl::SleepFor(absl::Milliseconds(10));  // the listener stays readable
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void Acceptor::take(int listener, Descriptor connection) {
  const int number = connection.number();
  const int reserved = first_reserved();
  if (number >= reserved) close_silent(kSilentAtOnce, any_client);
  if (number >= reserved + kOverlap) return;  // which closes it
  const std::string peer = peer_of(number);
  if (peer.empty() || !has_room_for(principal_name(peer))) return;
  const int yes = 1;
  ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  const ino_t inode = inode_of(number);
  clients_[principal_name(peer)].push_back({number, inode, peer, steady_now()});
  guard_socket(number, inode, peer, limits_.frames);
  hand_(listener, connection.release());
}

bool Acceptor::has_room_for(const std::string& client) {
  const auto count = [&] {
    const auto found = clients_.find(client);
    return found != clients_.end() ? found->second.size() : 0;
  };
  if (count() >= limits_.per_client) remove_closed();
  if (count() >= limits_.per_client) close_silent(1, [&](const std::string& name) { return name == client; });
  return count() < limits_.per_client;
}

void Acceptor::close_silent(std::size_t at_most, const std::function<bool(const std::string&)>& of_client) {
  struct Silent {
    Connections* owner;
    Connections::iterator connection;
  };
  std::vector<Silent> silent;
  for (auto& [client, connections] : clients_) {
    if (!of_client(client)) continue;
    for (auto connection = connections.begin(); connection != connections.end(); ++connection) {
      if (inode_of(connection->number) == connection->inode && is_silent(connection->number))
        silent.push_back({&connections, connection});
    }
  }
  const auto oldest = silent.begin() + static_cast<std::ptrdiff_t>(std::min(at_most, silent.size()));
  std::partial_sort(silent.begin(), oldest, silent.end(), [](const Silent& a, const Silent& b) {
    return a.connection->accepted < b.connection->accepted;
  });
  std::for_each(silent.begin(), oldest, [this](const Silent& entry) {
    ::shutdown(entry.connection->number, SHUT_RDWR);
    forget(*entry.connection);
    entry.owner->erase(entry.connection);
  });
}

void Acceptor::forget(const Connection& connection) const {
  forget_guard(connection.number, connection.inode);
  if (connection.peer != kUnixPeer) calls_->forget(connection.peer);  // or others of that name may be there
}

absl::Time Acceptor::close_stalled(absl::Time now) {
  absl::Time next = now + limits_.half_message;
  for (const auto& [client, connections] : clients_) {
    for (const Connection& connection : connections) {
      const absl::Time idle = std::max(connection.accepted, calls_->idle_since(connection.peer));
      next = std::min(next, idle + limits_.half_message);
      if (now - idle <= limits_.half_message || inode_of(connection.number) != connection.inode) continue;
      spdlog::info("{}: no whole message for {} (half_message); its connection is closed", connection.peer,
                   absl::FormatDuration(limits_.half_message));
      ::shutdown(connection.number, SHUT_RDWR);
    }
  }
  return next;
}

void Acceptor::remove_closed() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    client->second.remove_if([this](const Connection& connection) {
      if (inode_of(connection.number) == connection.inode && !is_left(connection.number)) return false;
      forget(connection);
      return true;
    });
    client = client->second.empty() ? clients_.erase(client) : std::next(client);
  }
}

}  // namespace cumulus::server

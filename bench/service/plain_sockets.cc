#include "bench/service/plain_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>

namespace cumulus::bench {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// What a client asks for: bytes that it sends, then bytes that it wants.
using Request = std::array<std::uint64_t, 2>;

bool send_all(int socket, const std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, data, std::min(bytes, kPiece), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, std::byte* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t received = ::recv(socket, data, std::min(bytes, kPiece), 0);
    if (received <= 0) return false;
    data += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

void serve(int socket) {
  std::vector<std::byte> piece(kPiece);
  Request request;
  while (receive_all(socket, reinterpret_cast<std::byte*>(request.data()), sizeof(request))) {
    for (std::uint64_t left = request[0]; left > 0; left -= std::min<std::uint64_t>(left, kPiece))
      if (!receive_all(socket, piece.data(), std::min<std::uint64_t>(left, kPiece))) return;
    for (std::uint64_t left = request[1]; left > 0; left -= std::min<std::uint64_t>(left, kPiece))
      if (!send_all(socket, piece.data(), std::min<std::uint64_t>(left, kPiece))) return;
    if (!send_all(socket, piece.data(), 1)) return;
  }
  ::close(socket);
}

[[noreturn]] void serve_all(int tcp, int local) {
  const auto accept_on = [](int listener) {
    while (true) {
      const int socket = ::accept(listener, nullptr, nullptr);
      if (socket >= 0) std::thread(serve, socket).detach();
    }
  };
  std::thread(accept_on, tcp).detach();
  accept_on(local);
  std::abort();
}

int listen_on(int family, const sockaddr* address, socklen_t size) {
  const int listener = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener, address, size) != 0 || ::listen(listener, 64) != 0)
    throw std::runtime_error(std::string("the plain server cannot listen: ") + std::strerror(errno));
  return listener;
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

sockaddr_un local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

/// Calls `move(socket, begin, bytes)` for each socket's part, at the same time; `move` says whether it went
/// well.
void in_parts(const std::vector<int>& sockets, std::size_t bytes,
              const std::function<bool(int, std::size_t, std::size_t)>& move) {
  std::atomic<bool> good = true;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const std::size_t begin = bytes * i / sockets.size();
    const std::size_t end = bytes * (i + 1) / sockets.size();
    threads.emplace_back([&, i, begin, end] {
      if (!move(sockets[i], begin, end - begin)) good = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!good) throw std::runtime_error("a plain socket failed");
}

bool ask(int socket, const Request& request) {
  return send_all(socket, reinterpret_cast<const std::byte*>(request.data()), sizeof(request));
}

}  // namespace

PlainServer::PlainServer() : unix_path_("/tmp/cumulus-bench-plain-" + std::to_string(::getpid())) {
  sockaddr_in here = loopback(0);
  const int tcp = listen_on(AF_INET, reinterpret_cast<const sockaddr*>(&here), sizeof(here));
  socklen_t size = sizeof(here);
  ::getsockname(tcp, reinterpret_cast<sockaddr*>(&here), &size);
  tcp_port_ = ntohs(here.sin_port);
  const sockaddr_un there = local(unix_path_);
  const int unix_socket = listen_on(AF_UNIX, reinterpret_cast<const sockaddr*>(&there), sizeof(there));
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("the plain server cannot fork");
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    serve_all(tcp, unix_socket);
  }
  ::close(tcp);
  ::close(unix_socket);
}

PlainServer::~PlainServer() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
  ::unlink(unix_path_.c_str());
}

PlainClient::PlainClient(const PlainServer& server, Over over, int connections) {
  const sockaddr_in tcp = loopback(server.tcp_port());
  const sockaddr_un path = local(server.unix_path());
  for (int i = 0; i < connections; ++i) {
    const int socket = ::socket(over == Over::kTcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int connected = over == Over::kTcp
                              ? ::connect(socket, reinterpret_cast<const sockaddr*>(&tcp), sizeof(tcp))
                              : ::connect(socket, reinterpret_cast<const sockaddr*>(&path), sizeof(path));
    sockets_.push_back(socket);
    if (connected != 0) throw std::runtime_error("the plain client cannot connect");
  }
}

PlainClient::~PlainClient() {
  for (const int socket : sockets_) ::close(socket);
}

void PlainClient::upload(std::span<const std::byte> bytes) const {
  in_parts(sockets_, bytes.size(), [&](int socket, std::size_t begin, std::size_t size) {
    std::byte answer{};
    return ask(socket, {size, 0}) && send_all(socket, bytes.data() + begin, size) &&
           receive_all(socket, &answer, 1);
  });
}

void PlainClient::download(std::span<std::byte> bytes) const {
  in_parts(sockets_, bytes.size(), [&](int socket, std::size_t begin, std::size_t size) {
    std::byte answer{};
    return ask(socket, {0, size}) && receive_all(socket, bytes.data() + begin, size) &&
           receive_all(socket, &answer, 1);
  });
}

}  // namespace cumulus::bench

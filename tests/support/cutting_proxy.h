#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>

namespace cumulus::testing {

/// Stands between clients and a server on a loopback port, counts connections, and cuts some, or holds all.
class CuttingProxy {
 public:
  explicit CuttingProxy(int server_port) : server_port_(server_port), listener_(open_socket()) {
    sockaddr_in here = loopback(0);
    socklen_t size = sizeof(here);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0)
      throw std::runtime_error("the proxy cannot listen");
    address = "127.0.0.1:" + std::to_string(ntohs(here.sin_port));
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~CuttingProxy() {
    stopping_ = true;
    acceptor_.join();
    for (std::thread& thread : pumps_) thread.join();
    ::close(listener_);
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  /// So many connections, those that first carry more than `bytes` from now on, are closed.
  void cut(int connections, std::size_t bytes) {
    ++round_;
    cut_after_ = bytes;
    left_to_cut_ = connections;
  }
  /// All connections stay open, and nothing more is carried once so many bytes have been.
  void hold_after(std::size_t bytes) { hold_after_ = bytes; }
  bool holds() const { return carried_ > hold_after_; }
  /// That are still to be cut.
  int left_to_cut() const { return left_to_cut_; }
  /// That were ever opened.
  int connections() const { return connections_; }

  std::string address;

 private:
  static constexpr int kPollMilliseconds = 20;

  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  /// Whoever waits for an answer waits for the end of each message, which the system would keep back until
  /// what went before is acknowledged.
  static void send_at_once(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  static int open_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

  void accept_all() {
    while (!stopping_) {
      pollfd waits{listener_, POLLIN, 0};
      if (::poll(&waits, 1, kPollMilliseconds) <= 0) continue;
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const int server = open_socket();
      const sockaddr_in there = loopback(server_port_);
      if (client < 0 || ::connect(server, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) != 0) {
        ::close(client);
        ::close(server);
        continue;
      }
      send_at_once(client);
      send_at_once(server);
      ++connections_;
      pumps_.emplace_back([this, client, server] { pump(client, server); });
    }
  }

  void pump(int client, int server) {
    std::size_t carried = 0;
    int round = round_;
    const std::array ends = {client, server};
    bool open = true;
    while (open && !stopping_) {
      if (holds()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
        continue;
      }
      std::array<pollfd, 2> waits = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
      if (::poll(waits.data(), waits.size(), kPollMilliseconds) <= 0) continue;
      for (std::size_t i = 0; i < ends.size() && open; ++i) {
        if (waits[i].revents == 0) continue;
        const std::size_t bytes = forward(ends[i], ends[1 - i]);
        open = bytes > 0;
        if (round != round_) carried = 0;
        round = round_;
        carried += bytes;
        carried_ += bytes;
      }
      if (carried > cut_after_ && takes_cut()) open = false;
    }
    ::close(client);
    ::close(server);
  }

  /// One of those that are left, if there is one.
  bool takes_cut() {
    int left = left_to_cut_;
    while (left > 0 && !left_to_cut_.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0;
  }

  /// How many bytes went; 0 at the end.
  static std::size_t forward(int from, int to) {
    std::array<char, 65536> bytes;
    const ssize_t size = ::recv(from, bytes.data(), bytes.size(), 0);
    for (ssize_t sent = 0; sent < size;) {
      const auto left = static_cast<std::size_t>(size - sent);
      const ssize_t now = ::send(to, bytes.data() + sent, left, MSG_NOSIGNAL);
      if (now <= 0) return 0;
      sent += now;
    }
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }

  const int server_port_;
  const int listener_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::atomic<int> round_ = 0;
  std::atomic<int> left_to_cut_ = 0;
  std::atomic<std::size_t> cut_after_ = 0;
  std::atomic<std::size_t> carried_ = 0;  // by all, so far
  std::atomic<std::size_t> hold_after_ = std::numeric_limits<std::size_t>::max();
  std::thread acceptor_;
  std::list<std::thread> pumps_;
};

}  // namespace cumulus::testing

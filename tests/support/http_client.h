#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

namespace cumulus::testing {

/// A TCP connection to a port of 127.0.0.1, that says what it likes.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(port));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  ~RawConnection() { ::close(socket_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return connected_; }
  /// False where the other end is gone.
  bool send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// All that comes until the other end closes, or `limit` is over.
  std::string receive(std::chrono::milliseconds limit = std::chrono::seconds(20)) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    std::string text;
    char chunk[4096];
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd entry{socket_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0)
        return text + "<no end>";
      const ssize_t count = ::recv(socket_, chunk, sizeof(chunk), 0);
      if (count <= 0) return text;
      text.append(chunk, static_cast<std::size_t>(count));
    }
  }

 private:
  const int socket_;
  bool connected_ = false;
};

/// A port of 127.0.0.1 that nobody has, until this object is gone.
class RawListener {
 public:
  RawListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&name), size) == 0 &&
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size) == 0)
      port_ = ntohs(name.sin_port);
  }
  ~RawListener() { ::close(socket_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  int port() const { return port_; }

 private:
  const int socket_;
  int port_ = 0;
};

struct HttpPage {
  int code = 0;  // 0: no answer
  std::string head;
  std::string body;
};

inline HttpPage get_page(int port, const std::string& path,
                         const std::string& headers = "Host: 127.0.0.1\r\n") {
  const RawConnection connection(port);
  connection.send("GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
  const std::string text = connection.receive();
  const std::size_t end = text.find("\r\n\r\n");
  if (text.rfind("HTTP/1.1 ", 0) != 0 || end == std::string::npos) return {0, text, {}};
  return {std::stoi(text.substr(9, 3)), text.substr(0, end + 2), text.substr(end + 4)};
}

}  // namespace cumulus::testing

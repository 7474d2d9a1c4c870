#include "server/runtime/metrics/http_server.h"

#include <absl/time/clock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <iterator>

#include "proto/steady_time.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr int kHeadTooLarge = 431;
/// How late a connection's age may be noticed.
constexpr int kCheckMilliseconds = 250;
/// So that clients without end take processors only where calls leave some.
constexpr int kNice = 10;

std::string_view phrase(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case kHeadTooLarge:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string format(const HttpAnswer& answer, bool head_only) {
  std::string text =
      concat("HTTP/1.1 ", answer.code, " ", phrase(answer.code), "\r\nContent-Type: ", answer.type,
             "\r\nContent-Length: ", answer.body.size(),
             "\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  for (const auto& [name, value] : answer.headers) text += concat(name, ": ", value, "\r\n");
  text += "\r\n";
  if (!head_only) text += answer.body;
  return text;
}

std::string format_error(int code) {
  return format({.code = code, .body = concat(code, " ", phrase(code), "\n")}, false);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

HttpServer::HttpServer(std::vector<Descriptor> listeners, const Limits& limits, Handler handler)
    : listeners_(std::move(listeners)),
      limits_(limits),
      handler_(std::move(handler)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

HttpServer::~HttpServer() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.number(), &one, sizeof(one));
  thread_.join();
}

void HttpServer::run() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);  // of this thread, on Linux
  std::vector<pollfd> entries;
  while (true) {
    entries.clear();
    entries.push_back({wake_.number(), POLLIN, 0});
    for (const Descriptor& listener : listeners_) entries.push_back({listener.number(), POLLIN, 0});
    for (const Connection& connection : connections_) {
      const short wanted = connection.wants_to_write() ? POLLOUT : POLLIN;
      entries.push_back({connection.socket.number(), wanted, 0});
    }
    (void)::poll(entries.data(), entries.size(), connections_.empty() ? -1 : kCheckMilliseconds);
    if (entries.front().revents != 0) return;
    // Before new ones come, which have no entry yet.
    const absl::Time now = steady_now();
    auto entry = entries.begin() + 1 + static_cast<std::ptrdiff_t>(listeners_.size());
    for (auto connection = connections_.begin(); connection != connections_.end(); ++entry) {
      const bool over = now - connection->accepted > limits_.max_age ||
                        (entry->revents != 0 && !serve(*connection, entry->revents));
      connection = over ? connections_.erase(connection) : std::next(connection);
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (entries[i + 1].revents != 0) accept_some(listeners_[i]);
    }
  }
}

void HttpServer::accept_some(const Descriptor& listener) {
  for (std::size_t i = 0; i < limits_.max_connections; ++i) {
    Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      make_room();
      absl::SleepFor(absl::Milliseconds(10));  // the listener stays readable
      return;
    }
    if (connections_.size() >= limits_.max_connections) make_room();
    connections_.push_back({std::move(socket), steady_now()});
    // What came with the connection is answered at once, so that those after it cannot push it out.
    if (!serve(connections_.back(), POLLIN)) connections_.pop_back();
  }
}

void HttpServer::make_room() {
  if (!connections_.empty()) connections_.pop_front();
}

bool HttpServer::serve(Connection& connection, short events) {
  if ((events & (POLLERR | POLLNVAL)) != 0) return false;
  if (!connection.wants_to_write() && !read(connection)) return false;
  return !connection.wants_to_write() || write(connection);
}

bool HttpServer::read(Connection& connection) {
  std::array<char, 4096> chunk;
  const ssize_t count = ::recv(connection.socket.number(), chunk.data(), chunk.size(), 0);
  if (count == 0) return false;
  if (count < 0) return would_block();
  if (connection.ended) return true;  // what the client sends beyond its request is nobody's
  connection.in.append(chunk.data(), static_cast<std::size_t>(count));
  const std::size_t end = connection.in.find(kHeadEnd);
  if (std::min(end, connection.in.size()) > limits_.max_head_bytes) {
    connection.out = format_error(kHeadTooLarge);
  } else if (end != std::string::npos) {
    connection.out = answer(std::string_view(connection.in).substr(0, end));
  } else {
    return true;
  }
  connection.answered = true;
  connection.in = {};
  return true;
}

bool HttpServer::write(Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const ssize_t count = ::send(connection.socket.number(), connection.out.data() + connection.sent,
                                 connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0) return would_block();
    connection.sent += static_cast<std::size_t>(count);
  }
  // To close with something unread would take the answer from the client.
  ::shutdown(connection.socket.number(), SHUT_WR);
  connection.ended = true;
  connection.out = {};
  return true;
}

std::string HttpServer::answer(std::string_view head) const {
  const ParsedHead parsed = parse_http_head(head);
  if (parsed.error != 0) return format_error(parsed.error);
  return format(handler_(parsed.request), parsed.head_only);
}

}  // namespace cumulus::server

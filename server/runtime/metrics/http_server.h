#pragma once

#include <absl/time/time.h>

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/runtime/descriptor.h"

namespace cumulus::server {

/// A GET or HEAD.
struct HttpRequest {
  std::string path = {};           // "/metrics", without what follows a '?'
  std::string host = {};           // the header, as it came
  std::string authorization = {};  // the header, as it came
};

struct HttpAnswer {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Serves pages over HTTP/1.1, an answer a connection, from one thread that never waits for a client.
/// Clients that are slow, endless or many lose their connections: a request that is there before
/// max_connections newer connections are is answered, and all together take no more memory than
/// max_connections * (max_head_bytes + an answer). docs/decisions has why it is no library's.
class HttpServer {
 public:
  struct Limits {
    std::size_t max_connections = 32;  // beyond them the oldest is closed
    std::size_t max_head_bytes = 8192;
    absl::Duration max_age = absl::Seconds(10);  // of a connection, whatever it does
  };
  /// Called on the server's thread; does not wait.
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  HttpServer(std::vector<Descriptor> listeners, const Limits& limits, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  struct Connection {
    Descriptor socket;
    absl::Time accepted;
    std::string in = {};
    std::string out = {};
    std::size_t sent = 0;
    bool answered = false;
    bool ended = false;  // all is sent: waits for the client to close

    bool wants_to_write() const { return answered && !ended; }
  };

  void run();
  void accept_some(const Descriptor& listener);
  void make_room();
  /// False once the connection is over.
  bool serve(Connection& connection, short events);
  bool read(Connection& connection);
  static bool write(Connection& connection);
  std::string answer(std::string_view head) const;

  const std::vector<Descriptor> listeners_;
  const Limits limits_;
  const Handler handler_;
  const Descriptor wake_;
  std::list<Connection> connections_;  // of the thread alone; oldest first
  std::thread thread_;
};

/// The request that a head is, without the empty line at its end, or the code of the error that it is.
struct ParsedHead {
  int error = 0;  // 0: none
  bool head_only = false;
  HttpRequest request = {};
};
ParsedHead parse_http_head(std::string_view head);

}  // namespace cumulus::server

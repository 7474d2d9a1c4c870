#include "server/runtime/metrics/http_server.h"

#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/runtime/connections/acceptor.h"
#include "tests/support/http_client.h"

namespace cumulus::testing {
namespace {

using server::HttpAnswer;
using server::HttpRequest;
using server::HttpServer;
using ::testing::HasSubstr;
using ::testing::Not;

/// A page that says its own path, and one that is large.
HttpAnswer answer(const HttpRequest& request) {
  if (request.path == "/large") return {.body = std::string(std::size_t{16} << 20, 'x')};
  if (request.path == "/none") return {.code = 404, .body = "none\n"};
  return {.body = request.path + " for " + request.host + " by " + request.authorization};
}

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpServer::Limits limits = {}) {
    const auto address = server::parse_listen_address("127.0.0.1:0");
    ASSERT_TRUE(address.ok());
    auto listeners = server::listen_at(*address, port_);
    ASSERT_TRUE(listeners.ok()) << listeners.status();
    server_ = std::make_unique<HttpServer>(*std::move(listeners), limits, answer);
  }

  int port_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  start();
  const HttpPage page = get_page(port_, "/metrics?name=x", "hOST:  a:1 \r\nAuthorization: Bearer t\r\n");
  EXPECT_EQ(page.code, 200);
  EXPECT_EQ(page.body, "/metrics for a:1 by Bearer t");
  EXPECT_THAT(page.head, HasSubstr("Content-Length: 28\r\n"));
  EXPECT_THAT(page.head, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(get_page(port_, "/none").code, 404);
  EXPECT_EQ(get_page(port_, "/large").body.size(), std::size_t{16} << 20);
}

TEST_F(HttpServerTest, AnAddressThatIsTakenIsNamedByItsField) {
  start();
  server::ListenAddress taken = server::parse_listen_address("127.0.0.1:" + std::to_string(port_)).value();
  EXPECT_THAT(std::string(server::listen_at(taken, taken.port, "observability.metrics").status().message()),
              HasSubstr("observability.metrics: cannot bind 127.0.0.1:"));
}

TEST_F(HttpServerTest, TakesARequestInPieces) {
  start();
  const RawConnection connection(port_);
  for (const char c : std::string("GET /pieces HTTP/1.0\r\nHost: h\r\n\r\n"))
    ASSERT_TRUE(connection.send(std::string(1, c)));
  EXPECT_THAT(connection.receive(), HasSubstr("/pieces for h"));
}

TEST_F(HttpServerTest, SaysWhatIsWrongWithARequest) {
  start();
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"POST / HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "},
      {"GET / HTTP/2.0\r\n\r\n", "HTTP/1.1 505 "},
      {"GET /\r\n\r\n", "HTTP/1.1 400 "},
      {"GET http://x/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /a\tb HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET / HTTP/1.1\r\nno colon here\r\n\r\n", "HTTP/1.1 400 "},
      {std::string("\0\r\n\r\n", 5), "HTTP/1.1 400 "},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 "},
      {"\x16\x03\x01\x02\r\n\r\n", "HTTP/1.1 400 "},
  };
  for (const auto& [request, expected] : rows) {
    const RawConnection connection(port_);
    ASSERT_TRUE(connection.send(request));
    EXPECT_EQ(connection.receive().substr(0, expected.size()), expected) << request;
  }
}

TEST_F(HttpServerTest, AHeadWithoutEndIsRefused) {
  start();
  const RawConnection connection(port_);
  connection.send("GET / HTTP/1.1\r\n");
  const std::string field = "X: " + std::string(1000, 'x') + "\r\n";
  for (int i = 0; i < 100 && connection.send(field); ++i) continue;
  EXPECT_THAT(connection.receive(), HasSubstr("HTTP/1.1 431 "));
  const RawConnection line(port_);
  line.send(std::string(20000, 'G'));
  EXPECT_THAT(line.receive(), HasSubstr("HTTP/1.1 431 "));
}

TEST_F(HttpServerTest, SlowClientsHoldUpNobodyAndEnd) {
  start({.max_connections = 8, .max_head_bytes = 8192, .max_age = absl::Milliseconds(300)});
  const RawConnection silent(port_);
  const RawConnection half(port_);
  half.send("GET / HT");
  const RawConnection unread(port_);  // of an answer that fits into no socket's buffer
  unread.send("GET /large HTTP/1.1\r\n\r\n");
  EXPECT_EQ(get_page(port_, "/quick").code, 200);
  EXPECT_THAT(silent.receive(), Not(HasSubstr("<no end>")));
  EXPECT_THAT(half.receive(), Not(HasSubstr("<no end>")));
}

TEST_F(HttpServerTest, ManyConnectionsMakeRoomForNewOnes) {
  start({.max_connections = 8, .max_head_bytes = 8192, .max_age = absl::Seconds(60)});
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(std::make_unique<RawConnection>(port_));
    ASSERT_TRUE(silent.back()->connected());
  }
  EXPECT_EQ(get_page(port_, "/quick").code, 200);
  EXPECT_THAT(silent.front()->receive(), Not(HasSubstr("<no end>")));
}

}  // namespace
}  // namespace cumulus::testing

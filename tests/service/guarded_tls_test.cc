#include "server/runtime/connections/guarded_tls.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/support/http2_frames.h"
#include "tests/support/secure_server.h"

namespace cumulus::testing {
namespace {

using namespace http2;

// POST, http, /, from HPACK's static table
const std::string kCall = "\x83\x86\x84";

/// A client of TLS that speaks HTTP/2 frame by frame.
class RawTls {
 public:
  explicit RawTls(const std::string& address)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)),
        context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    std::signal(SIGPIPE, SIG_IGN);
    const int buffer = 1 << 16;
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)), 0);
    connection_ = {SSL_new(context_.get()), &SSL_free};
    const unsigned char protocols[] = {2, 'h', '2'};
    SSL_set_alpn_protos(connection_.get(), protocols, sizeof(protocols));
    SSL_set_fd(connection_.get(), socket_);
    EXPECT_EQ(SSL_connect(connection_.get()), 1);
    EXPECT_TRUE(send(kPreface + frame(kSettings, 0, 0, "")));
  }
  ~RawTls() { ::close(socket_); }
  RawTls(const RawTls&) = delete;
  RawTls& operator=(const RawTls&) = delete;

  bool send(const std::string& bytes) {
    return SSL_write(connection_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }

 private:
  const int socket_;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> connection_{nullptr, &SSL_free};
};

// What no connection may send of this, with the buffers of its sockets. gRPC itself took 16 MB of the one
// kind and 3 of the other.
constexpr std::size_t kMost = std::size_t{1} << 20;

TEST(GuardedTls, ClosesAFloodOfContinuationFrames) {
  SecureServer server;
  server.start(server.settings());
  RawTls client(server.address());
  ASSERT_TRUE(client.send(frame(kHeaders, 0, 1, kCall)));
  const std::string more = frame(kContinuation, 0, 1, std::string(8000, '\0'));
  std::size_t sent = 0;
  while (sent < kMost && client.send(more)) sent += more.size();
  EXPECT_LT(sent, kMost) << "the connection is still open";
}

TEST(GuardedTls, ClosesAFloodOfResets) {
  SecureServer server;
  server.start(server.settings());
  RawTls client(server.address());
  std::size_t sent = 0;
  for (int stream = 1; sent < kMost; stream += 2) {
    const std::string call = frame(kHeaders, kEndHeaders, stream, kCall) +
                             frame(kResetStream, 0, stream, std::string("\0\0\0\x08", 4));
    if (!client.send(call)) break;
    sent += call.size();
  }
  EXPECT_LT(sent, kMost) << "the connection is still open";
}

TEST(GuardedTls, LeavesOtherCallsAlone) {
  SecureServer server;
  server.start(server.settings());
  const Caller caller(server.channel(), server.add_token("render", server::Role::kUser));
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(caller.capabilities().ok());
}

}  // namespace
}  // namespace cumulus::testing

#include "server/runtime/listen_address.h"

#include <gtest/gtest.h>

#include <string>

namespace cumulus::server {
namespace {

TEST(ListenAddress, TellsLoopbackFromTheRest) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:0", "localhost:65535", "[::1]:80", "unix:/tmp/x.sock"}) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_TRUE(address->is_loopback()) << text;
    EXPECT_EQ(address->text, text);
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "renderer.example:1", "127.evil.example:1"}) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_FALSE(address->is_loopback()) << text;
  }
  EXPECT_EQ(parse_listen_address("[::1]:0")->with_port(77), "[::1]:77");
  EXPECT_EQ(parse_listen_address("localhost:0")->with_port(77), "localhost:77");
}

TEST(ListenAddress, RefusesWhatIsNoAddress) {
  for (const char* text : {"", "host", ":50651", "host:", "host:70000", "host:-1", "host:http", "::1:50",
                           "[host]:1", "[::1:50", "unix:", "http://host:1"}) {
    EXPECT_FALSE(parse_listen_address(text).ok()) << text;
  }
  EXPECT_FALSE(parse_listen_address("unix:/" + std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace cumulus::server

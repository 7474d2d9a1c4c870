#include "server/runtime/principal.h"

#include <gtest/gtest.h>

namespace cumulus::server {
namespace {

TEST(PrincipalName, IsTheAddressWithoutItsPort) {
  EXPECT_EQ(principal_name("ipv4:127.0.0.2:50651"), "127.0.0.2");
  EXPECT_EQ(principal_name("ipv6:[::1]:50651"), "::1");
  EXPECT_EQ(principal_name("ipv6:%5B2001:db8::7%5D:50651"), "2001:db8::7");
  EXPECT_EQ(principal_name("ipv6:%5Bfe80::1%25eth0%5D:50651"), "fe80::1") << "the zone is this machine's";
}

TEST(PrincipalName, OfAUnixSocketAndOfThisProcessIsLocal) {
  EXPECT_EQ(principal_name("unix:"), "local");
  EXPECT_EQ(principal_name("unix:/run/cumulus.sock"), "local");
  EXPECT_EQ(principal_name("inproc"), "local");
  EXPECT_EQ(principal_name(""), "local");
}

TEST(Principals, TwoConnectionsOfOneAddressAreOnePrincipal) {
  const Principals principals({.max_queue_depth = 7, .weight = 2},
                              {{"10.0.0.1", {.max_queue_depth = 9, .weight = 4}}});
  EXPECT_EQ(principals.resolve("ipv4:10.0.0.2:1").name, principals.resolve("ipv4:10.0.0.2:2").name);
  EXPECT_EQ(principals.resolve("ipv4:10.0.0.2:1").limits.max_queue_depth, 7u);
  EXPECT_EQ(principals.resolve("ipv4:10.0.0.1:1").limits.max_queue_depth, 9u);
  EXPECT_EQ(principals.resolve("ipv4:10.0.0.1:1").limits.weight, 4);
}

}  // namespace
}  // namespace cumulus::server

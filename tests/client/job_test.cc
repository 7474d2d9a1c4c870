#include "cli/job/job.h"

#include <gtest/gtest.h>

#include "tests/client/fake_server.h"

namespace cumulus::cli {
namespace {

GlobalOptions options_for(const testing::FakeServer& server) {
  GlobalOptions options;
  options.server = server.target();
  return options;
}

TEST(Job, AsksForALeaseThatEndsSoonAfterTheCommandIsKilled) {
  testing::FakeServer server;
  Job job(options_for(server), Cancellation());
  const absl::StatusOr<Session> session = job.open_session();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_GT(server.script.asked_ttl_seconds, 10);
  EXPECT_LE(server.script.asked_ttl_seconds, 120);
}

TEST(Job, AnInterruptStopsItBeforeItOpensASession) {
  testing::FakeServer server;
  const Cancellation interrupt;
  interrupt.cancel();
  Job job(options_for(server), interrupt);
  EXPECT_TRUE(absl::IsCancelled(job.open_session().status()));
  EXPECT_EQ(server.script.open_sessions, 0);
}

}  // namespace
}  // namespace cumulus::cli

#include "server/runtime/idle_trim.h"

#include <gtest/gtest.h>

namespace cumulus::server {
namespace {

/// A process that is looked at ten times a second.
class IdleTrimTest : public ::testing::Test {
 protected:
  /// How often it is due within so many seconds in which this share of a core is used.
  int due_within(int seconds, double share) {
    int count = 0;
    for (int tick = 0; tick < 10 * seconds; ++tick) {
      now_ += absl::Milliseconds(100);
      used_ += absl::Milliseconds(100) * share;
      count += trim_.due(now_, used_) ? 1 : 0;
    }
    return count;
  }

 private:
  IdleTrim trim_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration used_;
};

TEST_F(IdleTrimTest, IsDueOnceAfterEachTimeOfWork) {
  EXPECT_EQ(due_within(10, 0.001), 0);  // it has done nothing yet
  EXPECT_EQ(due_within(3, 0.8), 0);
  EXPECT_EQ(due_within(1, 0.001), 0);
  EXPECT_EQ(due_within(60, 0.001), 1);
  EXPECT_EQ(due_within(1, 1.9), 0);
  EXPECT_EQ(due_within(60, 0.001), 1);
}

TEST_F(IdleTrimTest, IsDueAfterWorkWithLittleOfTheCores) {
  const int times = due_within(30, 0.05);
  EXPECT_GE(times, 1);
  EXPECT_LE(times, 10) << "each of which takes time, too";
}

}  // namespace
}  // namespace cumulus::server

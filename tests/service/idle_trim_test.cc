#include "server/runtime/idle_trim.h"

#include <gtest/gtest.h>

namespace cumulus::server {
namespace {

/// A process that is looked at ten times a second, or as often as is asked for.
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
  /// The same for one that is looked at when next_look says.
  int due_within_looks(absl::Duration time, double share) {
    int count = 0;
    for (const absl::Time end = now_ + time; now_ < end;) {
      const absl::Duration look = trim_.next_look();
      now_ += look;
      used_ += look * share;
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

TEST_F(IdleTrimTest, IsNotDueForWhatAnIdleProcessTakes) {
  EXPECT_EQ(due_within(600, 0.015), 0);
  EXPECT_EQ(due_within_looks(absl::Minutes(10), 0.015), 0);
}

TEST_F(IdleTrimTest, IsDueSomeSecondsAfterWorkThatNobodyAnnounced) {
  EXPECT_EQ(due_within_looks(absl::Minutes(1), 0.005), 0);
  EXPECT_EQ(due_within_looks(absl::Seconds(2), 0.2), 0) << "it may have ended just now";
  EXPECT_EQ(due_within_looks(absl::Seconds(4), 0.005), 1);
}

}  // namespace
}  // namespace cumulus::server

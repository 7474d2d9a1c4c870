#include "server/runtime/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cumulus::server {
namespace {

TEST(MemoryBudget, CountsReservationsAndTheirEnds) {
  const auto budget = MemoryBudget::create("device:test", 100);
  {
    const auto first = budget->reserve(60);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(budget->reserved_bytes(), 60u);
  }
  EXPECT_EQ(budget->reserved_bytes(), 0u);
  EXPECT_EQ(budget->high_water_bytes(), 60u);
}

TEST(MemoryBudget, RefusesWhatDoesNotFitAndSaysWhatIsFree) {
  const auto budget = MemoryBudget::create("device:test", 100);
  const auto first = budget->reserve(60);
  const auto second = budget->reserve(41);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(second.status().message()).find("40 are free"), std::string::npos) << second.status();
  EXPECT_NE(std::string(second.status().message()).find("try later"), std::string::npos) << second.status();
  const auto never = budget->reserve(101);
  EXPECT_NE(std::string(never.status().message()).find("larger limit"), std::string::npos) << never.status();
}

TEST(MemoryBudget, SplitsAReservationWithoutCountingTwice) {
  const auto budget = MemoryBudget::create("device:test", 100);
  auto whole = budget->reserve(60);
  ASSERT_TRUE(whole.ok());
  Reservation part = whole->split(20);
  EXPECT_EQ(budget->reserved_bytes(), 60u);
  whole->release();
  EXPECT_EQ(budget->reserved_bytes(), 20u);
  part.release();
  EXPECT_EQ(budget->reserved_bytes(), 0u);
}

TEST(MemoryBudget, CountsWhatIsKeptAsLongAsItIs) {
  const auto budget = MemoryBudget::create("device:test", 100);
  auto kept = budget->reserve(60);
  auto other = budget->reserve(20);
  ASSERT_TRUE(kept.ok() && other.ok());
  kept->set_kept(true);
  other->set_kept(true);
  EXPECT_EQ(budget->kept_bytes(), 80u);
  other->set_kept(false);
  EXPECT_EQ(budget->kept_bytes(), 60u);
  kept->release();
  EXPECT_EQ(budget->kept_bytes(), 0u);
}

TEST(MemoryBudget, IsNeverExceededByManyThreads) {
  const auto budget = MemoryBudget::create("device:test", 100);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const auto reservation = budget->reserve(30);
        ASSERT_LE(budget->reserved_bytes(), 100u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->reserved_bytes(), 0u);
  EXPECT_LE(budget->high_water_bytes(), 100u);
}

}  // namespace
}  // namespace cumulus::server

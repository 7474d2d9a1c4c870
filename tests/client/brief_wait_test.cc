#include "library/brief_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

namespace cumulus {
namespace {

using Clock = std::chrono::steady_clock;

TEST(BriefWait, GivesWhatIsThereAndWhatComes) {
  for (const auto after : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)}) {
    std::promise<int> promise;
    std::thread later([&] {
      std::this_thread::sleep_for(after);
      promise.set_value(7);
    });
    EXPECT_EQ(get_soon(promise.get_future()), 7);
    later.join();
  }
}

TEST(BriefWait, IsOneThreadsAtATimeAndSoonOver) {
  const BriefWait first;
  {
    const BriefWait second;
    EXPECT_FALSE(second.goes_on());
  }
  const Clock::time_point end = Clock::now() + std::chrono::seconds(10);
  while (first.goes_on()) ASSERT_LT(Clock::now(), end);
}

}  // namespace
}  // namespace cumulus

// Clients that ask for much and read it slowly, or never.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "tests/support/slow_reader.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kUpload = std::size_t{1} << 20;

/// The median of some uploads.
absl::Duration time_of_upload(const TransferServer& server) {
  const std::string data = random_bytes(kUpload);
  std::vector<absl::Duration> times;
  for (int i = 0; i < 15; ++i) {
    const absl::Time begin = absl::Now();
    const std::string name = server.upload(data).name();
    times.push_back(absl::Now() - begin);
    EXPECT_TRUE(server.delete_buffer(name).ok());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// On devices of both kinds: where chunks are staged, readers hold slots.
class SlowReaders : public ::testing::TestWithParam<bool> {};

TEST_P(SlowReaders, OfWhomThereAre40SlowNoUpload) {
  TransferServer server(GetParam() ? staged_device() : host_device());
  const std::string buffer = server.upload(std::string(std::size_t{32} << 20, 'x')).name();
  constexpr int kRounds = kSanitized ? 1 : 3;
  constexpr double kBar = kSanitized ? 1e6 : 3;  // times
  double least = 1e9;
  (void)time_of_upload(server);  // warm
  for (int round = 0; round < kRounds && least > kBar; ++round) {
    const absl::Duration alone = time_of_upload(server);
    std::vector<std::unique_ptr<SlowReader>> readers;
    for (int i = 0; i < 40; ++i)
      readers.push_back(std::make_unique<SlowReader>(own_channel(server.address), buffer));
    const absl::Duration beside = time_of_upload(server);
    std::printf("1 MiB: %.2f ms alone, %.2f ms beside 40 slow readers\n", absl::ToDoubleMilliseconds(alone),
                absl::ToDoubleMilliseconds(beside));
    least = std::min(least, absl::FDivDuration(beside, alone));
  }
  EXPECT_LE(least, kBar);
}

INSTANTIATE_TEST_SUITE_P(On, SlowReaders, ::testing::Bool(),
                         [](const auto& staged) { return staged.param ? "Staged" : "Host"; });

}  // namespace
}  // namespace cumulus::testing

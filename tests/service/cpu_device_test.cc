#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "kernels/core/unused_memory.h"
#include "server/runtime/device.h"
#include "server/runtime/host_memory.h"
#include "server/runtime/open_devices.h"
#include "tests/support/sanitized.h"

namespace cumulus::server {
namespace {

using ::testing::ContainsRegex;
using testing::kSanitized;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

std::unique_ptr<Device> device_of(std::size_t budget_bytes) {
  return make_cpu_device({.threads = 1, .budget_bytes = budget_bytes, .landing_bytes = 4096});
}

/// Takes a block, writes to all of it, and gives it back.
void use_block(Device& device, std::size_t bytes, int value) {
  const BufferMemory block = device.allocate(bytes);
  std::memset(block.host_data(), value, bytes);
}

/// Of the middle of a block that nobody has written to since it was allocated: 0 in new pages.
int byte_of_block(Device& device, std::size_t bytes) {
  return std::to_integer<int>(device.allocate(bytes).host_data()[bytes / 2]);
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

TEST(CpuDeviceMemory, LargeBlocksAreUsedAgainUntilTheProcessIsIdle) {
  const auto device = device_of(1024 * kMebibyte);
  for (const std::size_t bytes : {80 * kMebibyte, 200 * kMebibyte}) {
    use_block(*device, bytes, 7);
    EXPECT_EQ(byte_of_block(*device, bytes), 7) << "a block of " << bytes << " bytes went to the system";
    release_unused_host_memory();
    EXPECT_EQ(byte_of_block(*device, bytes), 0) << "an idle process keeps a block of " << bytes << " bytes";
  }
}

TEST(CpuDeviceMemory, BlocksOfManySizesAreKeptWithinTheBudget) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory counts as the process's";
  constexpr std::size_t kBudget = 256 * kMebibyte;
  constexpr std::size_t kLargest = 150 * kMebibyte;
  const auto device = device_of(kBudget);
  release_unused_host_memory();
  const std::size_t before = resident_bytes();
  for (std::size_t bytes = 80 * kMebibyte; bytes <= kLargest; bytes += 10 * kMebibyte)
    use_block(*device, bytes, 1);
  EXPECT_LT(resident_bytes(), before + kBudget + kLargest);
  release_unused_host_memory();
}

TEST(CpuDeviceMemory, ABudgetOfMoreThanTheMachineHasIsRefused) {
  Configuration configuration = default_configuration();
  configuration.devices.backend = Backend::kCpu;
  configuration.devices.cpu_memory_bytes = static_cast<std::size_t>(available_memory_bytes());
  EXPECT_TRUE(open_devices(configuration).ok());
  configuration.devices.cpu_memory_bytes = std::size_t{1000000} << 30;
  const absl::Status refused = open_devices(configuration).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(refused.message()),
      ContainsRegex("^devices.cpu_memory_bytes \\(--memory\\) is 1000000.0 GiB, and this machine.* has "
                    "[0-9]+\\.[0-9] GiB; at most that is right"));
}

}  // namespace
}  // namespace cumulus::server

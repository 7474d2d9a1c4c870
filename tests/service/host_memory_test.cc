#include "server/runtime/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

namespace fs = std::filesystem;

/// A folder with what /proc and /sys say of control groups.
class FakeRoot {
 public:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = folder_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::int64_t available() const { return available_memory_bytes(folder_ / ""); }

 private:
  testing::TemporaryFolder folder_;
};

constexpr std::int64_t kMachine = -1;
std::int64_t machine_bytes() { return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE); }

void expect(const FakeRoot& root, std::int64_t bytes) {
  EXPECT_EQ(root.available(), bytes == kMachine ? machine_bytes() : bytes);
}

TEST(HostMemory, IsTheMachinesWithoutAGroup) { expect(FakeRoot(), kMachine); }

TEST(HostMemory, OfAVersion2Group) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/kube/pod/container");
  root.write("sys/fs/cgroup/kube/pod/container/memory.max", "max");
  expect(root, kMachine);
  root.write("sys/fs/cgroup/kube/memory.max", "5000000");
  expect(root, 5000000);
  root.write("sys/fs/cgroup/kube/pod/container/memory.max", "3000000");
  expect(root, 3000000);
}

TEST(HostMemory, OfAContainerThatSeesItsVersion2GroupAsTheRoot) {
  FakeRoot root;
  root.write("proc/self/cgroup", "0::/");
  root.write("sys/fs/cgroup/memory.max", "4000000");
  expect(root, 4000000);
}

TEST(HostMemory, OfAVersion1Group) {
  FakeRoot root;
  root.write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n1:cpu:/\n0::/");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  expect(root, kMachine);
  root.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000");
  expect(root, 2000000);
}

TEST(HostMemory, OfAContainerThatSeesItsVersion1GroupAsTheRoot) {
  FakeRoot root;
  root.write("proc/self/cgroup", "4:memory:/docker/abc");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000");
  expect(root, 1000000);
}

TEST(HostMemory, OfAContainerThatSeesTheLimitAloneAndNoGroups) {
  FakeRoot version2;
  version2.write("sys/fs/cgroup/memory.max", "7000000");
  expect(version2, 7000000);
  FakeRoot version1;
  version1.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000000");
  expect(version1, 6000000);
}

TEST(HostMemory, NeedsNoSenseInThoseFiles) {
  FakeRoot root;
  root.write("proc/self/cgroup", "nonsense\n:\n0:\n4:memory:relative");
  root.write("sys/fs/cgroup/memory.max", "lots");
  expect(root, kMachine);
}

}  // namespace
}  // namespace cumulus::server

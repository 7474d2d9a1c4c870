// What uploads cost the daemon's memory.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

/// The page faults of a process so far that read nothing from a disk: field 10 of proc(5)'s stat.
long minor_faults(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));  // the second may hold spaces
  std::string skipped;
  for (int field = 3; field < 10; ++field) fields >> skipped;
  long faults = -1;
  fields >> faults;
  return faults;
}

class TransferMemory : public ::testing::TestWithParam<bool> {};

TEST_P(TransferMemory, UploadsTakeFewPageFaults) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's allocator keeps nothing by mallopt";
#endif
  Daemon daemon;
  ConnectOptions options;
  options.credentials = Credentials();
  options.shared_memory = GetParam();
  const absl::StatusOr<Client> client = Client::connect(daemon.address(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  constexpr int kMebibytes = 8;
  const std::vector<std::uint8_t> bytes(kMebibytes << 20, 7);
  const auto upload = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(bytes));
      ASSERT_TRUE(buffer.ok()) << buffer.status();
    }
  };
  constexpr int kUploads = 16;
  double per_mebibyte = 1e9;
  // While the heap still grows, a round takes more; one whose heap is given back takes more in every round.
  for (int round = 0; round < 6 && per_mebibyte > 15; ++round) {
    const long before = minor_faults(daemon.program().id());
    ASSERT_GT(before, 0);
    upload(kUploads);
    per_mebibyte =
        static_cast<double>(minor_faults(daemon.program().id()) - before) / (kUploads * kMebibytes);
  }
  EXPECT_LE(per_mebibyte, 15) << "page faults for each MiB";
}

INSTANTIATE_TEST_SUITE_P(, TransferMemory, ::testing::Bool(), [](const auto& shared) {
  return std::string(shared.param ? "ThroughSharedMemory" : "ThroughStreams");
});

}  // namespace
}  // namespace cumulus::testing

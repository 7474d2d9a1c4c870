// Transfers that the library asks for on the connections of their regions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "tests/support/shared_memory_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kBytes = std::size_t{3} << 20;

std::vector<std::uint8_t> some_bytes() {
  const std::string bytes = random_bytes(kBytes);
  return {bytes.begin(), bytes.end()};
}

class LibraryOnADevice : public ::testing::Test {
 protected:
  static Session make_session(const SharedMemoryServer& server) {
    ConnectOptions options;
    options.credentials = Credentials();
    const absl::StatusOr<Client> client = Client::connect(server.address, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *client->create_session();
  }
  Array shared_array(const std::vector<std::uint8_t>& bytes) {
    absl::StatusOr<Array> array =
        session_.allocate_shared(ElementType::kUint8, {static_cast<std::int64_t>(kBytes)});
    EXPECT_TRUE(array.ok()) << array.status();
    std::memcpy(array->mutable_bytes().data(), bytes.data(), bytes.size());
    return *std::move(array);
  }
  bool comes_back(const Array& array, const std::vector<std::uint8_t>& bytes) {
    const absl::StatusOr<Buffer> buffer = session_.upload(array.view());
    if (!buffer.ok()) return false;
    const auto back = session_.download<std::uint8_t>(*buffer);
    return back.ok() && *back == bytes;
  }

  std::unique_ptr<StagedDevice> device_ = staged_device();
  StagedDevice& staged_ = *device_;
  SharedMemoryServer server_{std::move(device_)};
  Session session_ = make_session(server_);
};

TEST_F(LibraryOnADevice, UploadsAnArrayAgainAndAgain) {
  const std::vector<std::uint8_t> bytes = some_bytes();
  const Array first = shared_array(bytes);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(comes_back(first, bytes));
  // Like the first, which the server knows.
  EXPECT_TRUE(comes_back(shared_array(bytes), bytes));
}

TEST_F(LibraryOnADevice, HasItsCopyBegunByTheKnock) {
  const std::vector<std::uint8_t> bytes = some_bytes();
  ASSERT_TRUE(
      comes_back(shared_array(bytes), bytes));  // by gRPC; from now on the server knows the region's like
  Array array = shared_array(bytes);
  for (const std::uint8_t letter : {'a', 'b', 'c'}) {
    const std::vector<std::uint8_t> letters(kBytes, letter);
    std::memset(array.mutable_bytes().data(), letter, kBytes);
    UploadOptions streams;
    streams.connections = 1;
    if (letter == 'c') {
      ASSERT_TRUE(session_.upload(array.view(), streams).ok());  // knocks, and calls another way
      std::memset(array.mutable_bytes().data(), 'd', kBytes);
      EXPECT_TRUE(comes_back(array, std::vector<std::uint8_t>(kBytes, 'd')));
      continue;
    }
    const std::size_t copies = staged_.all_copies();
    ASSERT_TRUE(session_.upload(array.view()).ok());
    EXPECT_EQ(staged_.all_copies(), copies + 2) << "the array and its head, not once more at the CALL";
    EXPECT_TRUE(comes_back(array, letters));
  }
}

TEST_F(LibraryOnADevice, LeavesAnArrayWholeWhoseUploadWasGivenUp) {
  const std::vector<std::uint8_t> bytes = some_bytes();
  const Array array = shared_array(bytes);
  ASSERT_TRUE(session_.upload(array.view()).ok());  // by gRPC; from now on the server knows the region
  ASSERT_EQ(server_.socket->shares().regions(), 1);
  for (const bool by_deadline : {false, true}) {
    const Array other = shared_array(bytes);
    staged_.hold();
    const Cancellation cancellation;
    UploadOptions options;
    options.call.cancellation = cancellation;
    if (by_deadline) options.call.timeout = absl::Milliseconds(50);
    auto upload =
        std::async(std::launch::async, [&] { return session_.upload(other.view(), options).status(); });
    ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() > 0; }));
    if (!by_deadline) cancellation.cancel();
    EXPECT_EQ(upload.get().code(),
              by_deadline ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kCancelled);
    staged_.release();
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const std::uint8_t*>(other.bytes().data())));
    EXPECT_TRUE(comes_back(other, bytes)) << "another way";
  }
  // Its connection may bring that call's answer yet: a ring took it, beside the first array's region.
  EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 2; }))
      << server_.socket->shares().regions();
}

/// Of a GPU, whose copies go on while their CALL is made.
TEST(LibraryOnAGpuCuda, BringsWhatLiesThereAtEachUpload) {
  if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  SharedMemoryServer server(
      server::make_gpu_device({.budget_bytes = TransferServer::kBudget, .landing_bytes = 8192}));
  ConnectOptions connection;
  connection.credentials = Credentials();
  const absl::StatusOr<Client> client = Client::connect(server.address, connection);
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  absl::StatusOr<Array> array =
      session->allocate_shared(ElementType::kUint8, {static_cast<std::int64_t>(kBytes)});
  ASSERT_TRUE(array.ok()) << array.status();
  for (std::uint8_t letter = 'a'; letter <= 'z'; ++letter) {
    std::memset(array->mutable_bytes().data(), letter, kBytes);
    const absl::StatusOr<Buffer> buffer = session->upload(array->view());
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    std::memset(array->mutable_bytes().data(), '.', kBytes);
    const auto back = session->download<std::uint8_t>(*buffer);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, std::vector<std::uint8_t>(kBytes, letter));
  }
}

}  // namespace
}  // namespace cumulus::testing

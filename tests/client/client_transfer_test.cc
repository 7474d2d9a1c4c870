#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/client/fake_server.h"

namespace cumulus {
namespace {

using testing::eventually;
using testing::FakeServer;

std::vector<std::uint32_t> counted(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 7U);
  return values;
}

std::string as_string(const std::vector<std::uint32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::uint32_t)};
}

class ClientTransfer : public ::testing::Test {
 protected:
  Session session() {
    absl::StatusOr<Session> session = client_.create_session();
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  FakeServer server_;
  Client client_ = server_.connect();
};

TEST_F(ClientTransfer, UploadsAndDownloadsEverySizeAroundTheChunk) {
  const Session session = this->session();
  constexpr std::size_t kChunkElements = (std::size_t{1} << 20) / sizeof(std::uint32_t);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{250}, kChunkElements - 1,
                                  kChunkElements, kChunkElements + 1, 3 * kChunkElements + 5}) {
    const std::vector<std::uint32_t> values = counted(count);
    const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(values));
    ASSERT_TRUE(buffer.ok()) << count << ": " << buffer.status();
    EXPECT_EQ(buffer->type(), ElementType::kUint32);
    EXPECT_EQ(buffer->shape(), Shape{static_cast<std::int64_t>(count)});
    EXPECT_EQ(server_.transfer.contents(buffer->name()), as_string(values)) << count;
    const auto back = session.download<std::uint32_t>(*buffer);
    ASSERT_TRUE(back.ok()) << count << ": " << back.status();
    EXPECT_EQ(*back, values) << count;
  }
}

TEST_F(ClientTransfer, TransfersSeveralArraysAtOnceThroughFutures) {
  const Session session = this->session();
  const std::vector<std::uint32_t> values = counted(1'000'000);
  std::vector<std::future<absl::StatusOr<Buffer>>> uploads;
  for (int i = 0; i < 4; ++i) uploads.push_back(session.upload_async(ArrayView(values)));
  for (auto& upload : uploads) {
    const absl::StatusOr<Buffer> buffer = upload.get();
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    std::vector<std::uint32_t> copy(values.size());
    auto into_memory = session.download_async(*buffer, std::as_writable_bytes(std::span(copy)));
    auto into_array = session.download_async(*buffer);
    const absl::Status downloaded = into_memory.get();
    EXPECT_TRUE(downloaded.ok()) << downloaded;
    EXPECT_EQ(copy, values);
    const absl::StatusOr<Array> array = into_array.get();
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->bytes().size(), copy.size() * sizeof(std::uint32_t));
    EXPECT_EQ(std::memcmp(array->bytes().data(), copy.data(), array->bytes().size()), 0);
  }
}

TEST_F(ClientTransfer, AFutureAnswersWhatTheCallWouldHave) {
  const Session session = this->session();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(1000)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  std::vector<std::byte> small(1);
  EXPECT_TRUE(absl::IsInvalidArgument(session.download_async(*buffer, small).get()));
  UploadOptions cancelled;
  cancelled.call.cancellation = Cancellation();
  cancelled.call.cancellation->cancel();
  EXPECT_TRUE(absl::IsCancelled(session.upload_async(ArrayView(counted(10)), cancelled).get().status()));
}

TEST_F(ClientTransfer, TellsProgressUpToTheWhole) {
  const Session session = this->session();
  const std::vector<std::uint32_t> values = counted(1'000'000);
  std::vector<std::int64_t> steps;
  UploadOptions options;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, 4'000'000);
    steps.push_back(done);
  };
  ASSERT_TRUE(session.upload(ArrayView(values), options).ok());
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1 << 20, 2 << 20, 3 << 20, 4'000'000}));
}

TEST_F(ClientTransfer, RepeatsAnInterruptedUpload) {
  const Session session = this->session();
  const std::vector<std::uint32_t> values = counted(1'000'000);
  server_.script.break_uploads = 2;
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(values));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(server_.script.uploads, 3);
  EXPECT_EQ(server_.transfer.contents(buffer->name()), as_string(values));
}

TEST_F(ClientTransfer, GivesUpOnAnUploadThatIsAlwaysInterrupted) {
  const Session session = this->session();
  server_.script.break_uploads = 1000;
  UploadOptions options;
  options.call.timeout = absl::Milliseconds(400);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(10)), options);
  EXPECT_TRUE(absl::IsUnavailable(buffer.status())) << buffer.status();
  EXPECT_GT(server_.script.uploads, 1);
}

TEST_F(ClientTransfer, ResumesAnInterruptedDownloadWhereItStopped) {
  const Session session = this->session();
  const std::vector<std::uint32_t> values = counted(1000);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(values));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server_.script.break_downloads = 3;
  std::vector<std::int64_t> steps;
  DownloadOptions options;
  options.progress = [&](std::int64_t done, std::int64_t) { steps.push_back(done); };
  const auto back = session.download<std::uint32_t>(*buffer, options);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, values);
  EXPECT_EQ(server_.script.downloads, 4);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1000, 2000, 3000, 4000}));
}

TEST_F(ClientTransfer, RefusesAChunkWithAFlippedBit) {
  const Session session = this->session();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(1000)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server_.script.flip_a_bit = true;
  const auto back = session.download<std::uint32_t>(*buffer);
  EXPECT_EQ(back.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(back.status().message(), "download: the chunk at byte 1000 does not match its crc32c");
}

TEST_F(ClientTransfer, RefusesAChunkOfAnotherPlace) {
  const Session session = this->session();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(1000)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server_.script.misplace = true;
  const auto back = session.download<std::uint32_t>(*buffer);
  EXPECT_EQ(back.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(back.status().message(), "download: the chunk at byte 1000 says that it is at byte 1001");
}

TEST_F(ClientTransfer, WaitsAsLongAsTheServerSays) {
  const Session session = this->session();
  server_.script.turn_away_uploads = 1;
  server_.script.retry_after_milliseconds = 500;
  const absl::Time start = absl::Now();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(10)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(server_.script.uploads, 2);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(500));
}

TEST_F(ClientTransfer, StopsWaitingWhenItIsCancelled) {
  const Session session = this->session();
  server_.script.turn_away_uploads = 1;
  server_.script.retry_after_milliseconds = 20'000;
  UploadOptions options;
  options.call.cancellation.emplace();
  const absl::Time start = absl::Now();
  const std::vector<std::uint32_t> values = counted(10);
  auto upload = session.upload_async(ArrayView(values), options);
  EXPECT_TRUE(eventually([&] { return server_.script.uploads == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which the answer arrives
  options.call.cancellation->cancel();
  EXPECT_FALSE(upload.get().ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(15)) << "it waited for its next attempt";
}

TEST_F(ClientTransfer, NoticesADownloadThatIsCutShort) {
  const Session session = this->session();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(1000)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server_.script.cut_short = true;
  const auto back = session.download<std::uint32_t>(*buffer);
  EXPECT_EQ(back.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(back.status().message(),
            "download: the chunk at byte 3000 never came: the server sent fewer than 4000 bytes");
}

TEST_F(ClientTransfer, RefusesAShapeThatDoesNotFitTheMemory) {
  const Session session = this->session();
  const auto wrong = session.upload(ArrayView(counted(6), {2, 4}));
  EXPECT_TRUE(absl::IsInvalidArgument(wrong.status()));
  EXPECT_EQ(wrong.status().message(), "upload: the shape needs 32 bytes, and the memory given has 24");
  EXPECT_TRUE(absl::IsInvalidArgument(session.upload(ArrayView(counted(6), {-2, -3})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      session.upload(ArrayView(counted(6), {std::int64_t{1} << 40, 1 << 30})).status()));
  EXPECT_EQ(server_.script.uploads, 0);
}

TEST_F(ClientTransfer, RefusesADestinationOfAnotherSize) {
  const Session session = this->session();
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(counted(4)));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  std::vector<std::byte> memory(15);
  const absl::Status status = session.download(*buffer, memory);
  EXPECT_EQ(status.message(), "download: the buffer has 16 bytes, and the destination 15");
  const auto floats = session.download<float>(*buffer);
  EXPECT_EQ(floats.status().message(), "the array holds uint32 elements, and was read as float32");
}

TEST_F(ClientTransfer, StopsAnUploadThatIsCancelled) {
  const Session session = this->session();
  UploadOptions options;
  options.call.cancellation.emplace();
  options.progress = [&](std::int64_t, std::int64_t) { options.call.cancellation->cancel(); };
  const auto buffer = session.upload(ArrayView(counted(5'000'000)), options);
  EXPECT_TRUE(absl::IsCancelled(buffer.status())) << buffer.status();
}

TEST_F(ClientTransfer, ReleasesABufferWithItsHandle) {
  const Session session = this->session();
  {
    absl::StatusOr<Buffer> first = session.upload(ArrayView(counted(4)));
    absl::StatusOr<Buffer> second = session.upload(ArrayView(counted(4)));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(server_.transfer.buffer_count(), 2U);
    *first = *std::move(second);
    EXPECT_TRUE(eventually([&] { return server_.transfer.buffer_count() == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return server_.transfer.buffer_count() == 0; }));
}

TEST_F(ClientTransfer, ReleasesABufferWhereConnectionsBreak) {
  const Session session = this->session();
  for (const int breaks : {1, 2}) {  // before the server has the call, and before the client has its answer
    server_.script.break_deletions = breaks;
    ASSERT_TRUE(session.upload(ArrayView(counted(4))).ok());
    EXPECT_TRUE(eventually([&] { return server_.script.break_deletions == 0; })) << breaks;
    EXPECT_TRUE(eventually([&] { return server_.transfer.buffer_count() == 0; })) << breaks;
  }
}

}  // namespace
}  // namespace cumulus

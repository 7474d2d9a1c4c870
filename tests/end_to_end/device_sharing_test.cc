// GPU memory shared between a daemon and this process. The disabled tests run in processes of their own,
// which the others start: their contexts do not survive, or they are killed.
#include "cumulus/device_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/recursive_filter.h"
#include "library/device_sharing/mapping.h"
#include "library/shared_memory/region.h"
#include "tests/end_to_end/gpu_program.h"
#include "tests/end_to_end/program.h"
#include "tests/support/eventually.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGranule = std::int64_t{2} << 20;
constexpr const char* kServer = "CUMULUS_TEST_DEVICE_SHARING_SERVER";
constexpr const char* kSocket = "CUMULUS_TEST_DEVICE_SHARING_SOCKET";

Client connect(const std::string& address) {
  absl::StatusOr<Client> client = Client::connect(address);
  if (!client.ok()) throw std::runtime_error(client.status().ToString());
  return *std::move(client);
}

std::vector<float> filled(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = fill_value(i);
  return values;
}

RecursiveFilterOptions blur(double sigma) {
  const AxisKernel axis{.kernel = GaussianKernel{.sigma = sigma}};
  return {.y = axis, .x = axis};
}

TEST(DeviceSharing, SaysWhatIsMissingWhereThereIsNone) {
  Daemon daemon;
  const Client client = connect(daemon.address());
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<float> values = filled(100);
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(values));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  if (gpu_count() > 0) {
    ASSERT_EQ(use_first_gpu(), "");
  }
  const absl::Status imported = import_buffer(*buffer).status();
  const absl::Status allocated = allocate_device_array(*session, ElementType::kFloat32, {10}).status();
  for (const absl::Status& status : {imported, allocated}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(gpu_count() > 0 ? "the session is on the device cpu" : "no CUDA driver"));
  }
  EXPECT_EQ(client.capabilities()->max_shared_device_bytes, 0);
}

TEST(DeviceSharing, RefusesShapesThatCannotBe) {
  Daemon daemon;
  const absl::StatusOr<Session> session = connect(daemon.address()).create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  for (const Shape& shape : {Shape{-1}, Shape{std::int64_t{1} << 62}}) {
    const absl::Status status = allocate_device_array(*session, ElementType::kFloat64, shape).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

class DeviceSharingCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    ASSERT_EQ(use_first_gpu(), "");
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"--backend", "cuda", "--memory", "1G", "--memory-on-demand",
                                 "--shared-device-memory", "1G", "--shared-memory-socket", socket_});
    client_ = std::make_unique<Client>(connect(daemon_->address()));
    absl::StatusOr<Session> session = client_->create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = std::make_unique<Session>(*std::move(session));
  }
  void TearDown() override {
    session_.reset();
    client_.reset();
  }

  Buffer upload(const std::vector<float>& values) {
    absl::StatusOr<Buffer> buffer = session_->upload(ArrayView(values));
    EXPECT_TRUE(buffer.ok()) << buffer.status();
    return *std::move(buffer);
  }
  std::int64_t reserved_bytes() { return client_->capabilities()->devices.front().reserved_bytes; }
  /// Runs one of the tests below in a process of its own.
  std::unique_ptr<Program> start_child(const std::string& test) {
    return std::make_unique<Program>(
        std::filesystem::read_symlink("/proc/self/exe"),
        std::vector<std::string>{"--gtest_filter=DeviceSharingCudaChild." + test},
        Environment{{kServer, daemon_->address()}, {kSocket, socket_}});
  }

  const std::string socket_ = "@cumulus-device-sharing-test-" + std::to_string(::getpid());
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

TEST_F(DeviceSharingCuda, ImportsWhatADownloadBrings) {
  EXPECT_EQ(client_->capabilities()->max_shared_device_bytes, std::int64_t{1} << 30);
  for (const std::int64_t rows : {1, 700}) {
    const std::vector<float> values = filled(static_cast<std::size_t>(rows * 1000));
    const absl::StatusOr<Buffer> image = session_->upload({values, {rows, 1000}});
    ASSERT_TRUE(image.ok()) << image.status();
    const absl::StatusOr<Result> blurred = session_->run(apply_recursive_filter(*image, blur(3)));
    ASSERT_TRUE(blurred.ok()) << blurred.status();
    const Buffer* const result = blurred->buffer("image");
    ASSERT_NE(result, nullptr);
    const absl::StatusOr<Array> downloaded = session_->download(*result);
    ASSERT_TRUE(downloaded.ok()) << downloaded.status();
    const absl::StatusOr<DeviceArray> imported = import_buffer(*result);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->type(), ElementType::kFloat32);
    EXPECT_EQ(imported->shape(), (Shape{rows, 1000}));
    EXPECT_EQ(imported->mutable_data(), nullptr);
    const std::span<const std::byte> wanted = downloaded->bytes();
    const std::vector<unsigned char> got = bytes_at(imported->data(), wanted.size());
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), wanted.size()), 0) << rows << " rows";
  }
}

TEST_F(DeviceSharingCuda, TakesWhatAKernelWroteAsIfItHadBeenUploaded) {
  constexpr std::int64_t kRows = 900;
  constexpr std::int64_t kColumns = 1100;
  const auto count = static_cast<std::size_t>(kRows * kColumns);
  const absl::StatusOr<DeviceArray> array =
      allocate_device_array(*session_, ElementType::kFloat32, {kRows, kColumns});
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(bytes_at(array->data(), static_cast<std::size_t>(kGranule)),
            std::vector<unsigned char>(static_cast<std::size_t>(kGranule), 0));
  GpuStream stream;
  stream.fill(static_cast<float*>(array->mutable_data()), count);
  const absl::StatusOr<Buffer> there = upload_device_array(*session_, *array, stream.get());
  ASSERT_TRUE(there.ok()) << there.status();
  // The buffer is the server's own: what is written later is not seen.
  ASSERT_EQ(set_bytes(array->mutable_data(), 0xff, count * sizeof(float)), "");
  const std::vector<float> values = filled(count);
  const absl::StatusOr<Buffer> sent = session_->upload({values, {kRows, kColumns}});
  ASSERT_TRUE(sent.ok()) << sent.status();
  std::vector<std::vector<float>> blurred;
  for (const Buffer* source : {&*there, &*sent}) {
    const absl::StatusOr<Result> result = session_->run(apply_recursive_filter(*source, blur(5)));
    ASSERT_TRUE(result.ok()) << result.status();
    const absl::StatusOr<std::vector<float>> got = session_->download<float>(*result->buffer("image"));
    ASSERT_TRUE(got.ok()) << got.status();
    blurred.push_back(*got);
  }
  EXPECT_EQ(blurred[0], blurred[1]);
}

TEST_F(DeviceSharingCuda, CountsAnImportUntilItsEnd) {
  const std::int64_t before = reserved_bytes();
  {
    const Buffer buffer = upload(filled(1000));
    absl::StatusOr<DeviceArray> array = import_buffer(buffer);
    ASSERT_TRUE(array.ok()) << array.status();
    const absl::StatusOr<DeviceArray> more =
        allocate_device_array(*session_, ElementType::kUint8, {kGranule + 1});
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_GE(reserved_bytes(), before + 3 * kGranule);
    session_.reset();
    EXPECT_EQ(reserved_bytes(), before + 3 * kGranule);
    // Nobody takes it away from who has it.
    EXPECT_EQ(std::memcmp(bytes_at(array->data(), 4000).data(), filled(1000).data(), 4000), 0);
  }
  EXPECT_TRUE(eventually([&] { return reserved_bytes() == before; }));
}

TEST_F(DeviceSharingCuda, GivesNobodyWhatOthersHadThere) {
  for (int round = 0; round < 3; ++round) {
    absl::StatusOr<DeviceArray> mine = allocate_device_array(*session_, ElementType::kUint8, {16 * kGranule});
    ASSERT_TRUE(mine.ok()) << mine.status();
    ASSERT_EQ(set_bytes(mine->mutable_data(), 0xa5, static_cast<std::size_t>(16 * kGranule)), "");
    mine = absl::CancelledError();
    const absl::StatusOr<DeviceArray> next =
        allocate_device_array(*session_, ElementType::kUint8, {16 * kGranule});
    ASSERT_TRUE(next.ok()) << next.status();
    const std::size_t bytes = static_cast<std::size_t>(16 * kGranule);
    EXPECT_EQ(bytes_at(next->data(), bytes), std::vector<unsigned char>(bytes, 0));
  }
}

TEST_F(DeviceSharingCuda, ReclaimsWhatAKilledProgramHad) {
  const std::int64_t before = reserved_bytes();
  const std::unique_ptr<Program> child = start_child("HoldsAnArray");
  ASSERT_TRUE(eventually([&] { return reserved_bytes() >= before + 32 * kGranule; })) << child->errors();
  child->send(SIGKILL);
  (void)child->wait();
  EXPECT_TRUE(eventually([&] { return reserved_bytes() == before; }));
}

TEST_F(DeviceSharingCuda, ReadsNothingBesideAnArray) {
  const std::vector<float> secret(static_cast<std::size_t>(kGranule) / sizeof(float), 12345.0F);
  const Buffer buffer = upload(secret);
  const absl::StatusOr<DeviceArray> neighbour = import_buffer(buffer);
  ASSERT_TRUE(neighbour.ok()) << neighbour.status();
  for (const char* test :
       {"ReadsBehindItsArray", "ReadsBeforeItsArray", "WritesToAnImport", "MapsMoreThanItsArray"}) {
    const std::unique_ptr<Program> child = start_child(test);
    const Ended ended = child->wait();
    EXPECT_EQ(ended.exit_code, 0) << test << ": " << ended.output << ended.errors;
    EXPECT_THAT(ended.output, HasSubstr("[  PASSED  ] 1 test.")) << test;
  }
  // The server and this program are as before.
  EXPECT_EQ(std::memcmp(bytes_at(neighbour->data(), 4000).data(), secret.data(), 4000), 0);
  EXPECT_TRUE(import_buffer(buffer).ok());
}

TEST_F(DeviceSharingCuda, IsOffUnlessConfigured) {
  Daemon daemon({"--backend", "cuda", "--memory", "1G", "--memory-on-demand"});
  const Client client = connect(daemon.address());
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(client.capabilities()->max_shared_device_bytes, 0);
  const absl::Status status = allocate_device_array(*session, ElementType::kUint8, {1}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--shared-device-memory"));
}

TEST_F(DeviceSharingCuda, TakesNoArrayOfAnotherServer) {
  Daemon daemon(
      {"--backend", "cuda", "--memory", "1G", "--memory-on-demand", "--shared-device-memory", "64M"});
  const absl::StatusOr<Session> elsewhere = connect(daemon.address()).create_session();
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  const absl::StatusOr<DeviceArray> array = allocate_device_array(*elsewhere, ElementType::kUint8, {10});
  ASSERT_TRUE(array.ok()) << array.status();
  const absl::Status status = upload_device_array(*session_, *array).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

TEST_F(DeviceSharingCuda, DrawsFromATableThatStaysThere) {
  Program example(CUMULUS_EXAMPLE_SHARED_TABLE, {daemon_->address(), "65536"});
  const Ended ended = example.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("65536 samples: irradiance"));
  std::cout << ended.output;
}

/// The same daemon's client in another process, with an array of a granule that a kernel of it has read.
class DeviceSharingCudaChild : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const address = std::getenv(kServer);
    if (address == nullptr) GTEST_SKIP() << "runs as the child of another test only";
    ASSERT_EQ(use_first_gpu(), "");
    client_ = std::make_unique<Client>(connect(address));
    absl::StatusOr<Session> session = client_->create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = std::make_unique<Session>(*std::move(session));
    const std::vector<unsigned char> values(static_cast<std::size_t>(kGranule), 7);
    const absl::StatusOr<Buffer> buffer = session_->upload(ArrayView(values));
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    absl::StatusOr<DeviceArray> array = import_buffer(*buffer);
    ASSERT_TRUE(array.ok()) << array.status();
    array_ = std::make_unique<DeviceArray>(*std::move(array));
    ASSERT_EQ(read_byte(bytes() + kGranule - 1), "");
  }

  const unsigned char* bytes() const { return static_cast<const unsigned char*>(array_->data()); }

  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<DeviceArray> array_;
};

TEST_F(DeviceSharingCudaChild, ReadsBehindItsArray) {
  EXPECT_EQ(read_byte(bytes() + kGranule), "cudaErrorIllegalAddress");
}

TEST_F(DeviceSharingCudaChild, ReadsBeforeItsArray) {
  EXPECT_EQ(read_byte(bytes() - 1), "cudaErrorIllegalAddress");
}

TEST_F(DeviceSharingCudaChild, WritesToAnImport) {
  EXPECT_EQ(write_byte(const_cast<unsigned char*>(bytes())), "cudaErrorIllegalAddress");
}

TEST_F(DeviceSharingCudaChild, MapsMoreThanItsArray) {
  const char* const address = std::getenv(kSocket);
  const absl::StatusOr<std::unique_ptr<SharedRegion>> region = SharedRegion::open(
      address != nullptr ? address : "", {.kind = SharedMemoryMessage::kDevice, .bytes = 1});
  ASSERT_TRUE(region.ok()) << region.status();
  const auto bytes = static_cast<std::size_t>(kGranule);
  ASSERT_EQ((*region)->bytes(), bytes);
  EXPECT_FALSE(DeviceMapping::map((*region)->descriptor(), 2 * bytes, DeviceMapping::Access::kRead).ok());
  EXPECT_TRUE(DeviceMapping::map((*region)->descriptor(), bytes, DeviceMapping::Access::kRead).ok());
}

TEST_F(DeviceSharingCudaChild, HoldsAnArray) {
  const absl::StatusOr<DeviceArray> more =
      allocate_device_array(*session_, ElementType::kUint8, {32 * kGranule});
  ASSERT_TRUE(more.ok()) << more.status();
  while (true) ::pause();
}

}  // namespace
}  // namespace cumulus::testing

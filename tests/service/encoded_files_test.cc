// Image files that are not in the request: uploaded, or on the server's disk. In builds with OpenImageIO.
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "server/pipeline/inputs.h"
#include "tests/support/operation_calls.h"
#include "tests/support/staged_device.h"
#include "tests/support/temporary_folder.h"

namespace cumulus {
namespace {

using testing::CallMaker;
using testing::eventually;
using ::testing::HasSubstr;
using testing::TestServer;

/// A Radiance picture of ones of four bytes a pixel.
std::vector<std::uint8_t> picture(int height, int width) {
  std::string file = absl::StrCat("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y ", height, " +X ", width, "\n");
  for (int i = 0; i < height * width; ++i) file += std::string("\x80\x80\x80\x81", 4);
  return {file.begin(), file.end()};
}

class EncodedFiles : public ::testing::Test {
 protected:
  EncodedFiles() : root_(server::FileRoot::open(folder_.path()).value()), server_(roomy(), root_) {
    session_ = server_.create_session();
    std::ofstream file(folder_ / "ones.hdr", std::ios::binary);
    const std::vector<std::uint8_t> bytes = picture(2, 2);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  static server::Configuration roomy() {
    auto configuration = TestServer::configuration();
    configuration.devices.cpu_memory_bytes = std::size_t{256} << 20;
    configuration.limits.decoded_images_bytes = std::size_t{256} << 20;
    configuration.limits.decode_time = absl::Minutes(1);  // the first decoder loads its libraries from a disk
    return configuration;
  }
  std::string put(const std::vector<std::uint8_t>& file) {
    return CallMaker(server_, session_).put(v1::UINT8, {static_cast<std::int64_t>(file.size())}, file);
  }
  v1::BuildSummedAreaTableRequest request() {
    v1::BuildSummedAreaTableRequest request;
    request.mutable_options()->set_session(session_);
    request.mutable_image()->mutable_encoded()->add_channels("G");
    return request;
  }
  v1::BuildSummedAreaTableRequest of_buffer(const std::string& name) {
    auto q = request();
    q.mutable_image()->mutable_encoded()->set_buffer(name);
    return q;
  }
  v1::BuildSummedAreaTableRequest of_path(const std::string& path) {
    auto q = request();
    q.mutable_image()->mutable_encoded()->set_path(path);
    return q;
  }
  grpc::Status build(const v1::BuildSummedAreaTableRequest& request) {
    grpc::ClientContext context;
    result_.Clear();
    return server_.operations->BuildSummedAreaTable(&context, request, &result_);
  }
  std::size_t held() { return server_.runtime.decoded_images->reserved_bytes(); }

  testing::TemporaryFolder folder_;
  std::shared_ptr<const server::FileRoot> root_;
  TestServer server_;
  std::string session_;
  v1::OperationResult result_;
};

TEST_F(EncodedFiles, OfManyMegabytesAreDecodedFromABuffer) {
  constexpr int kWidth = 1500;
  constexpr int kHeight = 1000;
  const std::vector<std::uint8_t> file = picture(kHeight, kWidth);
  ASSERT_GT(file.size(), std::size_t{3} << 20) << "more than fits into a request";
  const grpc::Status status = build(of_buffer(put(file)));
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::ArraySpec& spec = result_.arrays(0).buffer().spec();
  EXPECT_EQ(spec.shape(0), kHeight);
  EXPECT_EQ(spec.shape(1), kWidth);
  EXPECT_EQ(result_.timings().encoded_bytes(), static_cast<std::int64_t>(file.size()));
  EXPECT_GT(result_.timings().decode().nanos() + result_.timings().decode().seconds(), 0);
  const std::size_t pixels = sizeof(float) * kHeight * kWidth;
  EXPECT_GE(server_.runtime.decoded_images->high_water_bytes(), file.size() + pixels)
      << "the decoder's copy of the file counts beside the pixels";
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
}

TEST_F(EncodedFiles, InABufferGiveWhatTheyGiveInline) {
  const grpc::Status built = build(of_buffer(put(picture(3, 5))));
  ASSERT_TRUE(built.ok()) << built.error_message();
  const std::string from_buffer = result_.arrays(0).buffer().name();
  auto inline_request = request();
  const std::vector<std::uint8_t> file = picture(3, 5);
  inline_request.mutable_image()->mutable_encoded()->set_data(file.data(), file.size());
  ASSERT_TRUE(build(inline_request).ok());
  const auto a = server_.runtime.sessions.find_buffer(from_buffer, {}).value();
  const auto b = server_.runtime.sessions.find_buffer(result_.arrays(0).buffer().name(), {}).value();
  ASSERT_EQ(a->shape.bytes(), b->shape.bytes());
  EXPECT_EQ(std::memcmp(a->memory.host_data(), b->memory.host_data(), a->shape.bytes()), 0);
}

TEST_F(EncodedFiles, ABufferThatIsNoFileIsNamed) {
  const std::string floats = CallMaker(server_, session_).put_floats({4});
  testing::expect_bad_field(build(of_buffer(floats)), "image.encoded.buffer", "an array of UINT8");
  testing::expect_bad_field(build(of_buffer(put({1, 2, 3}))), "image.encoded.buffer", "send EXR");
  const std::string other = server_.create_session('1');
  testing::expect_bad_field(build(of_buffer(other + "/buffers/1")), "image.encoded.buffer",
                            "not a buffer of the request's session");
  EXPECT_EQ(build(of_buffer(session_ + "/buffers/77")).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(EncodedFiles, OnTheDiskAreReadByTheirPath) {
  ASSERT_TRUE(build(of_path("ones.hdr")).ok());
  EXPECT_EQ(result_.timings().encoded_bytes(), static_cast<std::int64_t>(picture(2, 2).size()));
  testing::expect_reason(build(of_path("../ones.hdr")), grpc::StatusCode::NOT_FOUND, "FILE_NOT_FOUND");
  testing::expect_reason(build(of_path("/etc/passwd")), grpc::StatusCode::NOT_FOUND, "FILE_NOT_FOUND");
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
}

TEST_F(EncodedFiles, ThatAreNoImagesShowNothing) {
  std::ofstream(folder_ / "notes.txt") << "secret";
  const grpc::Status status = build(of_path("notes.txt"));
  testing::expect_bad_field(status, "image.encoded.path", "of no format that is read here");
  EXPECT_THAT(status.error_message(), ::testing::Not(HasSubstr("secret")));
}

TEST(EncodedFilesOff, APathIsRefusedWhereNoFolderIsOpen) {
  TestServer server;
  v1::BuildSummedAreaTableRequest request;
  request.mutable_image()->mutable_encoded()->set_path("ones.hdr");
  grpc::ClientContext context;
  v1::OperationResult result;
  testing::expect_bad_field(server.operations->BuildSummedAreaTable(&context, request, &result),
                            "image.encoded.path", "file_root");
}

/// What a call does with its input, on a device whose memory the host must not touch.
class EncodedFilesOnADevice : public ::testing::Test {
 protected:
  static std::vector<server::DeviceSlot> slots() {
    std::vector<server::DeviceSlot> made(1);
    made[0].device = std::make_unique<testing::StagedDevice>(std::size_t{64} << 20);
    made[0].queue = std::make_unique<server::DeviceQueue>(*made[0].device);
    return made;
  }
  static server::Configuration configuration() {
    auto configuration = server::default_configuration();
    configuration.apply_device_budget(std::size_t{64} << 20);
    return configuration;
  }
  EncodedFilesOnADevice() : runtime_(configuration(), slots(), testing::decode_helper()) {}

  server::Runtime runtime_;
};

TEST_F(EncodedFilesOnADevice, AreCopiedToTheHostFirst) {
  server::DeviceSlot& slot = runtime_.devices.front();
  const auto session =
      runtime_.sessions.create_session({"s", &slot, absl::Minutes(1), std::size_t{1} << 20}).value();
  const std::vector<std::uint8_t> file = picture(2, 3);
  server::SessionStore::NewBuffer fresh;
  fresh.admission = runtime_.sessions.admit(*slot.device, session.get(), file.size()).value();
  fresh.shape = {v1::UINT8, {static_cast<std::int64_t>(file.size())}};
  fresh.memory = slot.device->allocate(file.size());
  std::memcpy(fresh.memory.span<Space::kDevice>().data(), file.data(), file.size());
  const auto buffer = runtime_.sessions.add_buffer(*session, std::move(fresh)).value();
  v1::Source source;
  source.mutable_encoded()->set_buffer(buffer->name);
  auto input = server::CallInput::resolve({"image", &source}, session.get(), {}, runtime_);
  ASSERT_TRUE(input.ok()) << input.status();
  const absl::Status decoded = input->decode(runtime_, *slot.device, [] { return absl::OkStatus(); });
  ASSERT_TRUE(decoded.ok()) << decoded;
  EXPECT_EQ(input->bytes(), 2U * 3 * 3 * sizeof(float));
  EXPECT_EQ(input->encoded_bytes(), file.size());
}

}  // namespace
}  // namespace cumulus

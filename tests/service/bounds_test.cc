// Every bound of the configuration is told by GetCapabilities and named by the error of who meets it.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/blocking_job.h"
#include "tests/support/hostile_files.h"
#include "tests/support/png_files.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

using config::v1::ServerConfig;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::HasSubstr;

constexpr std::string_view kNoBound;

/// The capability that tells each setting of these messages; kNoBound where it bounds no client.
const std::map<std::string, std::string_view>& capabilities_of_settings() {
  static const std::map<std::string, std::string_view> capabilities = {
      {"limits.max_inline_bytes", "max_inline_bytes"},
      {"limits.max_encoded_bytes", "max_encoded_bytes"},
      {"limits.max_buffer_bytes", "max_buffer_bytes"},
      {"limits.max_pixels", "max_pixels"},
      {"limits.max_channels", "max_channels"},
      {"limits.session_quota_bytes", "session_quota_bytes"},
      {"limits.max_sessions", "max_server_sessions"},
      {"limits.max_buffers_per_session", "max_buffers_per_session"},
      {"limits.default_ttl", "default_ttl"},
      {"limits.max_ttl", "max_ttl"},
      {"limits.max_deadline", "max_deadline"},
      {"limits.stalled_transfer", "stalled_transfer"},
      {"limits.decoded_images_bytes", "decoded_images_bytes"},
      {"limits.decoder_bytes", "decoder_bytes"},
      {"limits.min_upload_rate", "min_upload_rate"},
      {"limits.decode_time", "decode_time"},
      {"scheduling.decode_threads", kNoBound},
      {"scheduling.max_decode_queue", "max_decode_queue"},
      {"scheduling.decode_threads_per_client", kNoBound},
      {"scheduling.max_decode_queue_per_client", "max_decode_queue_per_client"},
      {"defaults.max_queue_depth", "max_queue_depth"},
      {"defaults.weight", kNoBound},
      {"defaults.max_sessions", "max_sessions"},
      {"defaults.max_transfers", "max_transfers"},
      {"defaults.max_upload_bytes", "max_upload_bytes"},
      {"defaults.session_quota_bytes", "session_quota_bytes"},
      {"connections.max_per_client", "max_connections_per_client"},
      {"connections.max_streams", "max_streams"},
      {"connections.message_bytes", "message_bytes"},
      {"connections.half_message", "half_message"},
      {"connections.keepalive", kNoBound},
      {"connections.max_age", "max_connection_age"},
      {"connections.max_header_bytes", "max_header_bytes"},
      {"connections.max_resets", "max_resets"},
      {"connections.watchdog", kNoBound},
      {"shared_memory.socket", kNoBound},
      {"shared_memory.group", kNoBound},
      {"shared_memory.max_bytes", "max_shared_bytes"},
      {"shared_memory.max_bytes_per_user", "max_shared_bytes_per_user"},
      {"shared_memory.max_device_bytes", kNoBound},  // of GPUs: max_shared_device_bytes, 0 on this CPU
      {"shared_memory.max_device_bytes_per_user", kNoBound},
      {"shared_memory.max_regions", "max_shared_regions"},
      {"shared_memory.max_regions_per_user", "max_shared_regions_per_user"},
  };
  return capabilities;
}

/// Of a number, or of a duration's seconds.
void set_number(Message& message, const FieldDescriptor& field, int value) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) return reflection.SetInt32(&message, &field, value);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) return reflection.SetInt64(&message, &field, value);
  Message& duration = *reflection.MutableMessage(&message, &field);
  set_number(duration, *duration.GetDescriptor()->FindFieldByName("seconds"), value);
}

std::int64_t number_of(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) return reflection.GetInt32(message, &field);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) return reflection.GetInt64(message, &field);
  const Message& duration = reflection.GetMessage(message, &field);
  return number_of(duration, *duration.GetDescriptor()->FindFieldByName("seconds"));
}

v1::Capabilities capabilities_of(TestServer& server) {
  v1::Capabilities capabilities;
  grpc::ClientContext context;
  const grpc::Status status = server.server->GetCapabilities(&context, {}, &capabilities);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return capabilities;
}

TEST(Bounds, AreAllToldByTheCapabilities) {
  ServerConfig config;
  const std::map<std::string, Message*> sections = {
      {"limits", config.mutable_limits()},
      {"scheduling", config.mutable_scheduling()},
      {"defaults", config.mutable_principals()->mutable_defaults()},
      {"connections", config.mutable_connections()},
      {"shared_memory", config.mutable_shared_memory()}};
  std::map<std::string, int> values;  // by the capability, each another
  for (const auto& [name, section] : sections) {
    for (int i = 0; i < section->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *section->GetDescriptor()->field(i);
      const std::string setting = absl::StrCat(name, ".", field.name());
      const auto found = capabilities_of_settings().find(setting);
      ASSERT_NE(found, capabilities_of_settings().end()) << setting << ": which capability tells it?";
      if (found->second == kNoBound) continue;
      const int value = 1000 + static_cast<int>(values.size());
      values.emplace(found->second, value);
      set_number(*section, field, value);
    }
  }
  config.mutable_devices()->set_backend(config::v1::Devices::CPU);
  const auto configuration = server::resolve_configuration(config);
  ASSERT_TRUE(configuration.ok()) << configuration.status();
  TestServer server(*configuration);
  const v1::Capabilities told = capabilities_of(server);
  for (const auto& [name, value] : values) {
    const FieldDescriptor* const field = told.GetDescriptor()->FindFieldByName(name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_EQ(number_of(told, *field), value) << name;
  }
}

/// Of one server, whose bounds a test makes small.
class Met : public ::testing::Test {
 protected:
  TestServer& start() {
    server_ = std::make_unique<TestServer>(configuration_);
    return *server_;
  }
  static v1::BuildSummedAreaTableRequest table(std::int64_t extent) {
    v1::BuildSummedAreaTableRequest request;
    set_inline(*request.mutable_image(), v1::FLOAT32, {extent, extent},
               std::vector<float>(static_cast<std::size_t>(extent * extent), 1));
    return request;
  }
  static v1::BuildSummedAreaTableRequest table_of(const std::string& file) {
    v1::BuildSummedAreaTableRequest request;
    request.mutable_image()->mutable_encoded()->set_data(file);
    return request;
  }
  std::string error_of(const v1::BuildSummedAreaTableRequest& request) {
    grpc::ClientContext context;
    v1::OperationResult result;
    return server_->operations->BuildSummedAreaTable(&context, request, &result).error_message();
  }
  std::string error_of(const v1::CreateSessionRequest& request) {
    grpc::ClientContext context;
    v1::Session session;
    return server_->sessions->CreateSession(&context, request, &session).error_message();
  }
  static v1::CreateSessionRequest session(int number) {
    v1::CreateSessionRequest request;
    request.set_session_id(absl::StrCat("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1f", number));
    return request;
  }
  void bound_principals(const server::PrincipalLimits& limits) {
    configuration_.principals = server::Principals(limits, {});
  }

  server::Configuration configuration_ = TestServer::configuration();
  std::unique_ptr<TestServer> server_;
};

TEST_F(Met, MaxInlineBytes) {
  configuration_.limits.max_inline_bytes = 300;
  start();
  EXPECT_THAT(error_of(table(10)), HasSubstr("at most 300 (max_inline_bytes) travel inline"));
  EXPECT_THAT(error_of(table(8)), HasSubstr("at most 300 (max_inline_bytes) come back inline"));
}

TEST_F(Met, MaxEncodedBytes) {
  configuration_.limits.max_encoded_bytes = 10;
  start();
  EXPECT_THAT(error_of(table_of(std::string(11, 'x'))), HasSubstr("at most 10 (max_encoded_bytes) travel"));
}

TEST_F(Met, MaxBufferBytes) {
  configuration_.limits.max_buffer_bytes = 1000;
  start();
  EXPECT_THAT(error_of(table(15)), HasSubstr("the server allows 1000 (max_buffer_bytes) in one array"));
}

std::string png_header(std::uint32_t extent, char colours) {
  const std::string header = big_endian(extent) + big_endian(extent) + std::string{8, colours, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", "") + png_chunk("IEND", "");
}

TEST_F(Met, MaxPixelsAndMaxChannels) {
  constexpr char kRgb = 2;
  configuration_.limits.max_pixels = 8;
  configuration_.limits.max_channels = 2;
  start();
  EXPECT_THAT(error_of(table_of(png_header(3, kRgb))), HasSubstr("at most 8 (max_pixels) are decoded"));
  EXPECT_THAT(error_of(table_of(png_header(2, kRgb))), HasSubstr("at most 2 (max_channels) are decoded"));
}

#ifdef CUMULUS_TEST_OPENIMAGEIO
TEST_F(Met, DecodedImagesBytes) {
  configuration_.limits.decoded_images_bytes = 3;
  start();
  EXPECT_THAT(error_of(table_of(png_file(2, 2, std::string(6, '\0')))),
              HasSubstr("limits:decoded_images_bytes has 3 bytes"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Met, DecoderBytes) {
  start();
  EXPECT_THAT(error_of(table_of(exr_with_a_huge_attribute())),
              HasSubstr("33554432 bytes that reading it may take (decoder_bytes)"));
}
#endif
#endif

TEST_F(Met, SessionQuotaBytes) {
  configuration_.limits.session_quota_bytes = 1000;
  start();
  v1::CreateSessionRequest request = session(10);
  request.set_quota_bytes(1001);
  EXPECT_THAT(error_of(request), HasSubstr("0 (the default) to 1000 (session_quota_bytes) is right"));
}

TEST_F(Met, MaxSessions) {
  configuration_.limits.max_sessions = 1;
  start();
  EXPECT_EQ(error_of(session(10)), "");
  EXPECT_THAT(error_of(session(11)), HasSubstr("has 1 sessions, its limit (limits.max_sessions)"));
}

TEST_F(Met, MaxSessionsOfAPrincipal) {
  bound_principals({.max_sessions = 1});
  start();
  EXPECT_EQ(error_of(session(10)), "");
  EXPECT_THAT(error_of(session(11)), HasSubstr("this client has 1 sessions, its limit (max_sessions)"));
}

TEST_F(Met, MaxBuffersPerSession) {
  configuration_.limits.max_buffers_per_session = 1;
  auto request = table(2);
  request.mutable_options()->set_session(start().create_session());
  EXPECT_EQ(error_of(request), "");
  EXPECT_THAT(error_of(request), HasSubstr("has 1 buffers, the limit (max_buffers_per_session)"));
}

TEST_F(Met, MaxTtl) {
  configuration_.limits.max_ttl = absl::Seconds(10);
  start();
  v1::CreateSessionRequest request = session(10);
  request.mutable_ttl()->set_seconds(11);
  EXPECT_THAT(error_of(request), HasSubstr("more than 0 and at most 10s (max_ttl) is right"));
}

/// Keeps the only lane busy until it goes.
class Busy {
 public:
  explicit Busy(TestServer& server) {
    EXPECT_TRUE(server.slot().queue->push(job_).ok());
    job_->wait_until_running();
  }
  ~Busy() { job_->release(); }

 private:
  const std::shared_ptr<BlockingJob> job_ = std::make_shared<BlockingJob>();
};

TEST_F(Met, MaxDeadline) {
  configuration_.limits.max_deadline = absl::Milliseconds(50);
  const Busy busy(start());
  EXPECT_THAT(error_of(table(2)), HasSubstr("the server allows 50ms (max_deadline)"));
}

TEST_F(Met, ADevicesMemoryWithoutWaiting) {
  configuration_.devices.cpu_memory_bytes = 2000;
  configuration_.limits.max_deadline = absl::Seconds(10);  // of a call that waits for the lane
  const Busy busy(start());
  EXPECT_THAT(error_of(table(15)), HasSubstr("bytes; device:cpu has 2000 bytes"));
}

TEST_F(Met, BatchCallsWaitAsSuch) {
  TestServer& server = start();
  auto request = table(2);
  request.mutable_options()->set_priority(v1::BATCH);
  std::future<std::string> waiting;
  {
    const Busy busy(server);
    waiting = std::async(std::launch::async, [&] { return error_of(request); });
    EXPECT_TRUE(eventually([&] { return server.slot().queue->depth(server::JobClass::kBatch) == 1; }));
  }
  EXPECT_EQ(waiting.get(), "");
}

TEST_F(Met, MaxQueueDepth) {
  bound_principals({.max_queue_depth = 1});
  TestServer& server = start();
  std::future<std::string> waiting;
  {
    const Busy busy(server);
    waiting = std::async(std::launch::async, [&] { return error_of(table(2)); });
    ASSERT_TRUE(eventually([&] { return server.slot().queue->depth() == 1; }));
    EXPECT_THAT(error_of(table(2)),
                HasSubstr("1 requests of local wait for cpu already, the limit (max_queue_depth)"));
  }
  EXPECT_EQ(waiting.get(), "");
}

TEST_F(Met, StalledTransfer) {
  configuration_.limits.stalled_transfer = absl::Milliseconds(100);
  TestServer& server = start();
  v1::WriteBufferRequest first;
  first.mutable_spec()->set_session(server.create_session());
  first.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
  first.mutable_spec()->mutable_spec()->add_shape(10);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  ASSERT_TRUE(writer->Write(first));
  EXPECT_THAT(writer->Finish().error_message(),
              HasSubstr("moved nothing for 100ms, the limit (stalled_transfer)"));
}

}  // namespace
}  // namespace cumulus::testing

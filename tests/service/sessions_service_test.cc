#include <gtest/gtest.h>

#include <string>

#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::expect_reason;
using testing::TestServer;

constexpr char kId[] = "6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f";

class SessionsService : public ::testing::Test {
 protected:
  grpc::Status create(const v1::CreateSessionRequest& request) {
    grpc::ClientContext context;
    return server_.sessions->CreateSession(&context, request, &session_);
  }
  static v1::CreateSessionRequest request() {
    v1::CreateSessionRequest request;
    request.set_session_id(kId);
    return request;
  }
  grpc::Status get(const std::string& name) {
    v1::GetSessionRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    return server_.sessions->GetSession(&context, request, &session_);
  }
  grpc::Status remove(const std::string& name) {
    v1::DeleteSessionRequest request;
    request.set_name(name);
    google::protobuf::Empty empty;
    grpc::ClientContext context;
    return server_.sessions->DeleteSession(&context, request, &empty);
  }

  /// Keeps an array of four bytes; its name.
  std::string keep_buffer() {
    v1::EncodeRunLengthsRequest encode;
    encode.mutable_options()->set_session(session_.name());
    testing::set_inline(*encode.mutable_array(), v1::UINT8, {4}, std::vector<std::uint8_t>(4));
    encode.set_max_runs(4);
    v1::OperationResult result;
    grpc::ClientContext context;
    const grpc::Status status = server_.operations->EncodeRunLengths(&context, encode, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result.arrays(0).buffer().name();
  }
  grpc::Status remove_buffers(const std::string& parent, const std::vector<std::string>& names,
                              bool allow_missing = false) {
    v1::BatchDeleteBuffersRequest request;
    request.set_parent(parent);
    for (const std::string& name : names) request.add_names(name);
    request.set_allow_missing(allow_missing);
    google::protobuf::Empty empty;
    grpc::ClientContext context;
    return server_.sessions->BatchDeleteBuffers(&context, request, &empty);
  }
  std::size_t buffers() { return server_.runtime.sessions.buffer_count(); }

  TestServer server_;
  v1::Session session_;
};

TEST_F(SessionsService, CreatesASessionOnADeviceWithItsQuotaAndLease) {
  auto q = request();
  q.set_quota_bytes(1000);
  q.mutable_ttl()->set_seconds(60);
  ASSERT_TRUE(create(q).ok());
  EXPECT_EQ(session_.name(), std::string("sessions/") + kId);
  EXPECT_EQ(session_.device(), "cpu");
  EXPECT_EQ(session_.quota_bytes(), 1000);
  EXPECT_EQ(session_.used_bytes(), 0);
  EXPECT_EQ(session_.instance(), server_.runtime.instance);
  EXPECT_NEAR(static_cast<double>(session_.expire_time().seconds()), static_cast<double>(time(nullptr)) + 60,
              5);
}

TEST_F(SessionsService, RefusesAnIdThatIsNoUuid) {
  for (const char* id :
       {"", "me", "6F0D9A52-3A64-4A3D-9D0A-0F3B8C0D1E2F", "6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2"}) {
    auto q = request();
    q.set_session_id(id);
    expect_bad_field(create(q), "session_id", "UUID");
  }
}

TEST_F(SessionsService, RefusesATtlOutOfRange) {
  for (const std::int64_t seconds : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40, INT64_MAX}) {
    auto q = request();
    q.mutable_ttl()->set_seconds(seconds);
    const grpc::Status status = create(q);
    expect_bad_field(status, "ttl", "ttl");
  }
}

TEST_F(SessionsService, RefusesAQuotaOutOfRange) {
  for (const std::int64_t quota : {std::int64_t{-1}, INT64_MAX}) {
    auto q = request();
    q.set_quota_bytes(quota);
    expect_bad_field(create(q), "quota_bytes", std::to_string(quota));
  }
}

TEST_F(SessionsService, RefusesADeviceThatIsNotThereAndNamesThoseThatAre) {
  auto q = request();
  q.set_device("cuda7");
  expect_bad_field(create(q), "device", "this server has cpu");
}

TEST_F(SessionsService, TwoClientsWithOneNameDoNotShareASession) {
  ASSERT_TRUE(create(request()).ok());
  EXPECT_EQ(create(request()).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(SessionsService, ADeletedSessionIsNotFound) {
  ASSERT_TRUE(create(request()).ok());
  const std::string name = session_.name();
  ASSERT_TRUE(get(name).ok());
  ASSERT_TRUE(remove(name).ok());
  expect_reason(get(name), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
  expect_reason(remove(name), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
}

TEST_F(SessionsService, ALeaseThatIsNotRenewedEnds) {
  auto q = request();
  q.mutable_ttl()->set_nanos(50000000);
  ASSERT_TRUE(create(q).ok());
  const std::string name = session_.name();
  ASSERT_TRUE(testing::eventually([&] { return server_.runtime.sessions.session_count() == 0; }));
  expect_reason(get(name), grpc::StatusCode::NOT_FOUND, "SESSION_EXPIRED");
}

TEST_F(SessionsService, BuffersThatAreNotThereAreNotFound) {
  ASSERT_TRUE(create(request()).ok());
  v1::GetBufferRequest get_request;
  get_request.set_name(session_.name() + "/buffers/1");
  v1::Buffer buffer;
  grpc::ClientContext get_context;
  expect_reason(server_.sessions->GetBuffer(&get_context, get_request, &buffer), grpc::StatusCode::NOT_FOUND,
                "BUFFER_NOT_FOUND");

  v1::DeleteBufferRequest delete_request;
  delete_request.set_name(get_request.name());
  google::protobuf::Empty empty;
  grpc::ClientContext strict;
  expect_reason(server_.sessions->DeleteBuffer(&strict, delete_request, &empty), grpc::StatusCode::NOT_FOUND,
                "BUFFER_NOT_FOUND");
  delete_request.set_allow_missing(true);
  grpc::ClientContext lenient;
  EXPECT_TRUE(server_.sessions->DeleteBuffer(&lenient, delete_request, &empty).ok());
}

TEST_F(SessionsService, DeletesManyBuffersAtOnceOrNone) {
  ASSERT_TRUE(create(request()).ok());
  const std::string session = session_.name();
  const std::size_t before = buffers();
  const std::string first = keep_buffer();
  const std::string second = keep_buffer();
  const std::size_t kept = buffers();
  ASSERT_GE(kept, before + 2);
  const std::string none = session + "/buffers/999";
  expect_reason(remove_buffers(session, {first, none, second}), grpc::StatusCode::NOT_FOUND,
                "BUFFER_NOT_FOUND");
  EXPECT_EQ(buffers(), kept) << "nothing has gone where one is missing";
  EXPECT_TRUE(remove_buffers(session, {first, none, second, first}, true).ok());
  EXPECT_EQ(buffers(), kept - 2);
  expect_reason(remove_buffers("sessions/none", {"sessions/none/buffers/1"}, true),
                grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
}

TEST_F(SessionsService, RefusesBatchesThatAreNone) {
  ASSERT_TRUE(create(request()).ok());
  const std::string session = session_.name();
  const std::string buffer = session + "/buffers/1";
  expect_bad_field(remove_buffers(session, {}), "names", "1 to 1000");
  expect_bad_field(remove_buffers(session, std::vector<std::string>(1001, buffer)), "names", "1001");
  EXPECT_TRUE(remove_buffers(session, std::vector<std::string>(1000, buffer), true).ok());
  expect_bad_field(remove_buffers(session, {buffer, "sessions/other/buffers/1"}), "names[1]",
                   "sessions/other/buffers/1");
}

TEST_F(SessionsService, RefusesAWrongPageSizeTokenOrParent) {
  ASSERT_TRUE(create(request()).ok());
  const auto list = [&](const std::string& parent, std::int32_t size, const std::string& token) {
    v1::ListBuffersRequest list_request;
    list_request.set_parent(parent);
    list_request.set_page_size(size);
    list_request.set_page_token(token);
    v1::ListBuffersResponse response;
    grpc::ClientContext context;
    return server_.sessions->ListBuffers(&context, list_request, &response);
  };
  EXPECT_TRUE(list(session_.name(), 0, "").ok());
  expect_bad_field(list(session_.name(), -1, ""), "page_size", "-1");
  expect_bad_field(list(session_.name(), 0, "x"), "page_token", "next_page_token");
  expect_reason(list("sessions/none", 0, ""), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
}

}  // namespace
}  // namespace cumulus

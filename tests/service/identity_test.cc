#include "server/runtime/identity/identity.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "proto/checksums.h"
#include "server/runtime/identity/reloader.h"
#include "tests/support/secure_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using grpc::StatusCode;
using server::Role;
using ::testing::HasSubstr;
using ::testing::Not;

/// All bytes that a call of a method that is not Cumulus's answers, in one string, with its status.
struct RawAnswer {
  std::string bytes;
  grpc::Status status;
};
RawAnswer call(const Caller& caller, const std::string& method, const std::string& request) {
  grpc::GenericStub stub(caller.channel());
  grpc::ClientContext context;
  caller.prepare(context);
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto stream = stub.PrepareCall(&context, method, &queue);
  stream->StartCall(nullptr);
  wait();
  const grpc::Slice content(request);
  stream->WriteLast(grpc::ByteBuffer(&content, 1), grpc::WriteOptions(), nullptr);
  wait();
  RawAnswer answer;
  while (true) {
    grpc::ByteBuffer message;
    stream->Read(&message, nullptr);
    if (!wait()) break;
    grpc::Slice slice;
    if (message.DumpToSingleSlice(&slice).ok())
      answer.bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  stream->Finish(&answer.status, nullptr);
  wait();
  return answer;
}

const std::string kReflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
const std::string kListServices = "\x3a\x01*";
const std::string kChannelz = "/grpc.channelz.v1.Channelz/GetServers";
const std::string kHealth = "/grpc.health.v1.Health/Check";

class IdentityTest : public ::testing::Test {
 protected:
  Caller with_token(const std::string& token) const { return Caller(server_.channel(), token); }
  Caller local() const {
    return Caller(grpc::CreateChannel(server_.socket(), grpc::InsecureChannelCredentials()));
  }

  SecureServer server_;
};

TEST_F(IdentityTest, WhoSaysNothingIsToldWhatToSay) {
  server_.start(server_.settings());
  const grpc::Status status = Caller(server_.channel()).capabilities();
  expect_reason(status, StatusCode::UNAUTHENTICATED, "CREDENTIALS_MISSING");
  EXPECT_THAT(status.error_message(), HasSubstr("--token-file"));
  EXPECT_THAT(status.error_message(), HasSubstr("--tls-cert"));
  expect_reason(with_token("cumulus_wrong").capabilities(), StatusCode::UNAUTHENTICATED, "TOKEN_UNKNOWN");
}

TEST_F(IdentityTest, EveryRpcAsks) {
  server_.start(server_.settings());
  const Caller nobody(server_.channel());
  for (const char* service : {"Operations", "Sessions", "BufferTransfer", "SharedMemory", "Server"}) {
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
        absl::StrCat("cumulus.v1.", service));
    for (int i = 0; i < descriptor->method_count(); ++i) {
      const std::string method = absl::StrCat("/cumulus.v1.", service, "/", descriptor->method(i)->name());
      const RawAnswer answer = call(nobody, method, "");
      EXPECT_EQ(answer.bytes, "") << method;
      expect_reason(answer.status, StatusCode::UNAUTHENTICATED, "CREDENTIALS_MISSING");
    }
  }
}

TEST_F(IdentityTest, ATokenIsGoodUntilItIsTakenBack) {
  server_.start(server_.settings());
  const Caller alice = with_token(server_.add_token("alice", Role::kUser));
  EXPECT_TRUE(alice.capabilities().ok());
  write_text(server_.folder() / "tokens", "# nobody\n");
  ASSERT_TRUE(server_.identity->reload().ok());
  expect_reason(alice.capabilities(), StatusCode::UNAUTHENTICATED, "TOKEN_UNKNOWN");
}

TEST_F(IdentityTest, AnUnreadableTokenFileLeavesTheTokensAsTheyAre) {
  server_.start(server_.settings());
  const Caller alice = with_token(server_.add_token("alice", Role::kUser));
  write_text(server_.folder() / "tokens", "nonsense\n");
  EXPECT_FALSE(server_.identity->reload().ok());
  EXPECT_TRUE(alice.capabilities().ok());
}

TEST_F(IdentityTest, AHandleOfSomebodyElseIsNotFound) {
  server_.start(server_.settings());
  const Caller alice = with_token(server_.add_token("alice", Role::kUser));
  const Caller mallory = with_token(server_.add_token("mallory", Role::kAdmin));
  std::string session;
  ASSERT_TRUE(alice.create_session(&session).ok());
  EXPECT_TRUE(alice.get_session(session).ok());
  const grpc::Status refused = mallory.get_session(session);
  const grpc::Status unknown = mallory.get_session("sessions/6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e29");
  expect_reason(refused, StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
  EXPECT_EQ(unknown.error_code(), StatusCode::NOT_FOUND) << "and there is nothing to tell the two apart by";
  EXPECT_EQ(refused.error_message().substr(refused.error_message().find("it was")),
            unknown.error_message().substr(unknown.error_message().find("it was")));
}

TEST_F(IdentityTest, NoRpcTakesAHandleOfSomebodyElse) {
  server_.start(server_.settings());
  const Caller alice = with_token(server_.add_token("alice", Role::kUser));
  const Caller mallory = with_token(server_.add_token("mallory", Role::kAdmin));
  std::string session;
  ASSERT_TRUE(alice.create_session(&session).ok());

  // Alice's buffer.
  v1::WriteBufferRequest upload;
  upload.mutable_spec()->set_session(session);
  upload.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
  upload.mutable_spec()->mutable_spec()->add_shape(4);
  upload.set_data("gold");
  upload.set_crc32c(crc32c({reinterpret_cast<const std::byte*>("gold"), 4}));
  upload.set_finish_write(true);
  const RawAnswer written = call(alice, "/cumulus.v1.BufferTransfer/WriteBuffer", upload.SerializeAsString());
  ASSERT_TRUE(written.status.ok()) << written.status.error_message();
  v1::Buffer buffer;
  ASSERT_TRUE(buffer.ParseFromString(written.bytes));

  v1::ReadBufferRequest by_name;  // whose field 1 is a name, as that of all but ListBuffers' parent
  by_name.set_name(buffer.name());
  v1::GetSessionRequest the_session;
  the_session.set_name(session);
  v1::BatchDeleteBuffersRequest several;
  several.set_parent(session);
  several.add_names(buffer.name());
  several.set_allow_missing(true);
  v1::MatchBracketsRequest operation;
  operation.mutable_options()->set_session(session);
  operation.mutable_text()->set_buffer(buffer.name());
  const std::vector<std::pair<std::string, std::string>> attempts = {
      {"BufferTransfer/ReadBuffer", by_name.SerializeAsString()},
      {"BufferTransfer/WriteBuffer", upload.SerializeAsString()},
      {"Sessions/GetBuffer", by_name.SerializeAsString()},
      {"Sessions/DeleteBuffer", by_name.SerializeAsString()},
      {"Sessions/BatchDeleteBuffers", several.SerializeAsString()},
      {"Sessions/ListBuffers", the_session.SerializeAsString()},
      {"Sessions/GetSession", the_session.SerializeAsString()},
      {"Sessions/DeleteSession", the_session.SerializeAsString()},
      {"Operations/MatchBrackets", operation.SerializeAsString()},
  };
  for (const auto& [rpc, request] : attempts) {
    const RawAnswer answer = call(mallory, "/cumulus.v1." + rpc, request);
    EXPECT_EQ(answer.status.error_code(), StatusCode::NOT_FOUND) << rpc << answer.status.error_message();
    EXPECT_EQ(answer.bytes, "") << rpc;
  }
  const RawAnswer read = call(alice, "/cumulus.v1.BufferTransfer/ReadBuffer", by_name.SerializeAsString());
  EXPECT_THAT(read.bytes, HasSubstr("gold")) << "it is all there still";
}

TEST_F(IdentityTest, ACertificateSaysWhoItIs) {
  server_.start(server_.settings());
  const TestCertificate render("ignored", "DNS:render-7", &server_.authority());
  const TestCertificate same("other", "DNS:render-7", &server_.authority());
  const TestCertificate plain("render-8", "", &server_.authority());
  const Caller first(server_.channel(&render));
  std::string session;
  ASSERT_TRUE(first.create_session(&session).ok());
  EXPECT_TRUE(Caller(server_.channel(&same)).get_session(session).ok()) << "the name counts, not the key";
  EXPECT_EQ(Caller(server_.channel(&plain)).get_session(session).error_code(), StatusCode::NOT_FOUND);
  std::string another;
  EXPECT_TRUE(Caller(server_.channel(&plain)).create_session(&another, '1').ok())
      << "the common name will do";
}

TEST_F(IdentityTest, ACertificateOfAnotherAuthorityIsTurnedAway) {
  server_.start(server_.settings());
  const TestCertificate stranger("Another authority");
  const TestCertificate forged("x", "DNS:ops", &stranger);
  EXPECT_EQ(Caller(server_.channel(&forged)).capabilities().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(IdentityTest, ATokenGoesBeforeACertificate) {
  server_.start(server_.settings());
  const TestCertificate render("x", "DNS:render-7", &server_.authority());
  const std::string token = server_.add_token("alice", Role::kUser);
  std::string session;
  ASSERT_TRUE(Caller(server_.channel(&render), token).create_session(&session).ok());
  EXPECT_TRUE(with_token(token).get_session(session).ok());
  expect_reason(Caller(server_.channel(&render), "cumulus_wrong").capabilities(), StatusCode::UNAUTHENTICATED,
                "TOKEN_UNKNOWN");
}

TEST_F(IdentityTest, WhoReadsMetricsDoesNothingElse) {
  server_.start(server_.settings());
  const Caller scraper = with_token(server_.add_token("prometheus", Role::kMetrics));
  expect_reason(scraper.capabilities(), StatusCode::PERMISSION_DENIED, "ROLE_FORBIDS");
  std::string session;
  expect_reason(scraper.create_session(&session), StatusCode::PERMISSION_DENIED, "ROLE_FORBIDS");
}

TEST_F(IdentityTest, LimitsAreThoseOfTheName) {
  server::Configuration settings = server_.settings();
  settings.principals =
      server::Principals({.max_sessions = 64}, {{"alice", {.max_sessions = 1, .session_quota_bytes = 4096}}});
  server_.start(settings);
  const Caller alice = with_token(server_.add_token("alice", Role::kUser));
  const Caller bob = with_token(server_.add_token("bob", Role::kUser));
  v1::Capabilities said;
  ASSERT_TRUE(alice.capabilities(&said).ok());
  EXPECT_EQ(said.max_sessions(), 1);
  EXPECT_EQ(said.session_quota_bytes(), 4096);
  std::string session;
  ASSERT_TRUE(alice.create_session(&session, '0').ok());
  EXPECT_EQ(alice.quota_of(session), 4096);
  EXPECT_EQ(alice.create_session(&session, '1').error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(bob.create_session(&session, '2').ok()) << "from the same address";
  EXPECT_GT(bob.quota_of(session), 4096);
}

TEST_F(IdentityTest, ReflectionAndChannelzAreForAdmins) {
  server_.start(server_.settings());
  const TestCertificate ops("x", "DNS:ops", &server_.authority());
  for (const Caller& admin :
       {with_token(server_.add_token("root", Role::kAdmin)), Caller(server_.channel(&ops)), local()}) {
    const RawAnswer services = call(admin, kReflection, kListServices);
    EXPECT_TRUE(services.status.ok()) << services.status.error_message();
    EXPECT_THAT(services.bytes, HasSubstr("cumulus.v1.Operations"));
    const RawAnswer servers = call(admin, kChannelz, "");
    EXPECT_TRUE(servers.status.ok()) << servers.status.error_message();
    EXPECT_GT(servers.bytes.size(), 10U);
  }
  for (const Caller& other : {with_token(server_.add_token("alice", Role::kUser)),
                              with_token(server_.add_token("prometheus", Role::kMetrics))}) {
    const RawAnswer services = call(other, kReflection, kListServices);
    expect_reason(services.status, StatusCode::PERMISSION_DENIED, "ROLE_FORBIDS");
    EXPECT_THAT(services.bytes, Not(HasSubstr("cumulus")));
    EXPECT_THAT(services.bytes, HasSubstr("reflection is for admins")) << "as its clients show it";
    const RawAnswer servers = call(other, kChannelz, "");
    expect_reason(servers.status, StatusCode::PERMISSION_DENIED, "ROLE_FORBIDS");
    EXPECT_EQ(servers.bytes, "");
  }
  expect_reason(call(Caller(server_.channel()), kReflection, kListServices).status,
                StatusCode::UNAUTHENTICATED, "CREDENTIALS_MISSING");
}

TEST_F(IdentityTest, HealthIsForEverybody) {
  server_.start(server_.settings());
  const RawAnswer health = call(Caller(server_.channel()), kHealth, "");
  EXPECT_TRUE(health.status.ok()) << health.status.error_message();
  EXPECT_EQ(health.bytes, std::string("\x08\x01"));
}

TEST_F(IdentityTest, WithoutIdentityEverybodyMayEverything) {
  server::Configuration settings = server_.settings();
  settings.identity = {};
  settings.tls = {};
  server_.start(settings);
  const auto open = [&] {
    return Caller(grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials()));
  };
  EXPECT_TRUE(open().capabilities().ok());
  EXPECT_THAT(call(open(), kReflection, kListServices).bytes, HasSubstr("cumulus.v1.Operations"));
  std::string session;
  ASSERT_TRUE(open().create_session(&session).ok());
  EXPECT_TRUE(local().get_session(session).ok()) << "a session's name is its only key";
}

TEST_F(IdentityTest, AHeaderOfHttpSaysWhoAsksToo) {
  server_.start(server_.settings());
  const std::string token = server_.add_token("prometheus", Role::kMetrics);
  const auto scraper = server_.identity->resolve_header("Bearer " + token, "ipv4:10.0.0.1:1");
  ASSERT_TRUE(scraper.ok()) << scraper.status();
  EXPECT_EQ(scraper->role, Role::kMetrics);
  EXPECT_EQ(server_.identity->resolve_header("Basic abc", "ipv4:10.0.0.1:1").status().code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(server_.identity->resolve_header("", "ipv4:10.0.0.1:1").status().code(),
            absl::StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace cumulus::testing

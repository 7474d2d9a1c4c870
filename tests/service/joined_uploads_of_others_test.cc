#include <gtest/gtest.h>

#include <span>
#include <string>
#include <thread>

#include "proto/checksums.h"
#include "tests/support/eventually.h"
#include "tests/support/secure_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using Code = grpc::StatusCode;

TEST(JoinedUploadsOfOthers, LookAsIfTheyWereNotThere) {
  SecureServer secure;
  const std::string alice = secure.add_token("alice", server::Role::kUser);
  const std::string mallory = secure.add_token("mallory", server::Role::kUser);
  secure.start(secure.settings());
  const Caller owner(secure.channel(), alice);
  const Caller stranger(secure.channel(), mallory);
  std::string session;
  ASSERT_TRUE(owner.create_session(&session).ok());
  v1::WriteBufferRequest message;
  message.mutable_spec()->set_session(session);
  message.mutable_spec()->mutable_spec()->set_element_type(v1::UINT8);
  message.mutable_spec()->mutable_spec()->add_shape(2);
  message.mutable_spec()->set_upload("hers");
  message.mutable_spec()->set_part_bytes(1);
  message.set_data("a");
  message.set_crc32c(crc32c(std::as_bytes(std::span("a", 1))));
  message.set_finish_write(true);
  const auto bring_as = [&](const Caller& caller, v1::WriteBufferRequest part, v1::Buffer* buffer) {
    grpc::ClientContext context;
    caller.prepare(context);
    const auto writer = v1::BufferTransfer::NewStub(caller.channel())->WriteBuffer(&context, buffer);
    writer->Write(part);
    return writer->Finish();
  };
  v1::Buffer first_answer;
  std::thread first([&] { EXPECT_TRUE(bring_as(owner, message, &first_answer).ok()); });
  EXPECT_TRUE(
      eventually([&] { return secure.runtime->devices.front().device->budget()->reserved_bytes() > 0; }));
  message.set_write_offset(1);
  v1::Buffer buffer;
  const grpc::Status refused = bring_as(stranger, message, &buffer);
  expect_reason(refused, Code::NOT_FOUND, "SESSION_NOT_FOUND");
  v1::WriteBufferRequest unknown = message;
  unknown.mutable_spec()->set_upload("nobody's");
  EXPECT_EQ(bring_as(stranger, unknown, &buffer).error_message(), refused.error_message());
  EXPECT_TRUE(bring_as(owner, message, &buffer).ok());
  first.join();
  EXPECT_EQ(buffer.name(), first_answer.name());
}

}  // namespace
}  // namespace cumulus::testing

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::TestServer;

grpc::Status call_with_empty_request(TestServer& server, const std::string& path) {
  grpc::GenericStub stub(server.channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice nothing("");
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

class EveryRpc : public ::testing::TestWithParam<std::string> {};

// Every RPC that a proto file declares is answered, and never with UNIMPLEMENTED.
TEST_P(EveryRpc, IsImplemented) {
  TestServer server;
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(GetParam());
  ASSERT_NE(service, nullptr);
  ASSERT_GT(service->method_count(), 0);
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string path = "/" + GetParam() + "/" + service->method(i)->name();
    const grpc::Status status = call_with_empty_request(server, path);
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << path << ": " << status.error_message();
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNKNOWN) << path << ": " << status.error_message();
  }
}

INSTANTIATE_TEST_SUITE_P(Services, EveryRpc,
                         ::testing::Values("cumulus.v1.Operations", "cumulus.v1.Sessions",
                                           "cumulus.v1.BufferTransfer", "cumulus.v1.Server"),
                         [](const auto& test) { return test.param.substr(test.param.rfind('.') + 1); });

TEST(OperationsService, AnEmptyRequestNamesTheFieldThatIsMissing) {
  TestServer server;
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("cumulus.v1.Operations");
  for (int i = 0; i < service->method_count(); ++i) {
    const grpc::Status status =
        call_with_empty_request(server, "/cumulus.v1.Operations/" + service->method(i)->name());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << service->method(i)->name();
    EXPECT_NE(status.error_message().find("is missing"), std::string::npos) << status.error_message();
  }
}

TEST(OperationsService, TheTestOfRpcsSeesOneThatIsNotThere) {
  TestServer server;
  EXPECT_EQ(call_with_empty_request(server, "/cumulus.v1.Operations/NotAnRpc").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace cumulus

// The calls of operations, which are counted and read by their service and not by gRPC.
#include "server/runtime/connections/open_calls.h"

#include <absl/time/clock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/operations/operations_service.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

class OperationsAlone : public ::testing::Test {
 protected:
  OperationsAlone() {
    keep_grpc_engine();
    counting_path_ = dynamic_cast<server::CountsItsCalls&>(*service_).count_in(calls_);
    const std::string address = "unix:" + (folder_ / "socket");
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  }

  grpc::Status call_filter_box(const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer message(&slice, 1);
    grpc::ByteBuffer answer;
    grpc::Status status;
    const auto call = stub.PrepareUnaryCall(&context, counting_path_ + "FilterBox", message, &queue);
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  const TemporaryFolder folder_;
  server::Configuration settings_ = TestServer::configuration();
  server::Runtime runtime_{settings_, *server::open_devices(settings_)};
  const std::unique_ptr<grpc::Service> service_ = server::make_operations_service(runtime_);
  const std::shared_ptr<server::OpenCalls> calls_ = std::make_shared<server::OpenCalls>();
  std::string counting_path_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(OperationsAlone, CountTheirCallsUntilTheyEnd) {
  const std::string peer = "unix:";
  EXPECT_EQ(counting_path_, "/cumulus.v1.Operations/");
  EXPECT_EQ(calls_->idle_since(peer), absl::InfinitePast());
  const absl::Time before = absl::Now();
  EXPECT_EQ(call_filter_box("").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  calls_->wait_for_none(absl::Seconds(10));
  EXPECT_GE(calls_->idle_since(peer), before);
  EXPECT_LE(calls_->idle_since(peer), absl::Now());
}

TEST_F(OperationsAlone, SayWhatIsWrongWithAMessageThatIsNone) {
  const grpc::Status status = call_filter_box("\xff\xff\xff\xff garbage");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of<google::rpc::ErrorInfo>(status).reason(), "MALFORMED_MESSAGE");
  EXPECT_NE(status.error_message().find("none that /cumulus.v1.Operations/FilterBox takes"),
            std::string::npos)
      << status.error_message();
}

}  // namespace
}  // namespace cumulus::testing

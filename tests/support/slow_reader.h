#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cumulus/v1/transfer.grpc.pb.h"

namespace cumulus::testing {

/// A connection that no other channel shares.
inline std::shared_ptr<grpc::Channel> own_channel(const std::string& address) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
}

/// Has read one chunk of a buffer, and reads no other.
class SlowReader {
 public:
  SlowReader(const std::shared_ptr<grpc::Channel>& channel, const std::string& buffer)
      : stub_(v1::BufferTransfer::NewStub(channel)) {
    v1::ReadBufferRequest request;
    request.set_name(buffer);
    reader_ = stub_->ReadBuffer(&context_, request);
    v1::ReadBufferResponse chunk;
    EXPECT_TRUE(reader_->Read(&chunk));
  }
  ~SlowReader() {
    context_.TryCancel();
    (void)reader_->Finish();
  }
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;

 private:
  const std::unique_ptr<v1::BufferTransfer::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::ReadBufferResponse>> reader_;
};

}  // namespace cumulus::testing

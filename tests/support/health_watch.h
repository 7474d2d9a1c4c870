#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace cumulus::testing {

/// A Watch of health, which lasts as long as its client likes.
class HealthWatch {
 public:
  explicit HealthWatch(const std::shared_ptr<grpc::Channel>& channel) : stub_(channel) {
    call_ = stub_.PrepareCall(&context_, "/grpc.health.v1.Health/Watch", &queue_);
    call_->StartCall(tag(1));
    await();
    const grpc::Slice empty;
    call_->Write(grpc::ByteBuffer(&empty, 1), grpc::WriteOptions().set_last_message(), tag(2));
    await();
    call_->Read(&response_, tag(3));
    began_ = await();
    if (!began_) {
      grpc::Status status;
      call_->Finish(&status, tag(4));
      await();
      ADD_FAILURE() << status.error_code() << ": " << status.error_message();
    }
  }
  ~HealthWatch() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, tag(4));
    await();
    queue_.Shutdown();
    while (await()) {
    }
  }
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;
  bool began() const { return began_; }

 private:
  static void* tag(std::intptr_t number) { return reinterpret_cast<void*>(number); }
  bool await() {
    void* got = nullptr;
    bool ok = false;
    return queue_.Next(&got, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer response_;
  bool began_ = false;
};

}  // namespace cumulus::testing

#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "server/pipeline/call.h"
#include "server/runtime/connections/open_calls.h"

namespace cumulus::server {

/// One call of an operation, between gRPC and the pipeline: it has the request and the result. Deletes
/// itself.
class CallReactor final : public grpc::ServerUnaryReactor {
 public:
  /// Counted in `calls`, unless they are null. `answer` is gRPC's.
  CallReactor(const grpc::CallbackServerContext& context, const std::shared_ptr<OpenCalls>& calls,
              grpc::ByteBuffer& answer)
      : answer_(answer), arena_(options()) {
    if (calls != nullptr) counted_.emplace(calls, context.peer(), true);
    result_ = google::protobuf::Arena::CreateMessage<v1::OperationResult>(&arena_);
  }

  /// Null where `message` is none of this type. It lives as long as this. `message` is empty then: gRPC would
  /// keep it to the end of the call, beside what was read.
  template <class Request>
  const Request* read(const grpc::ByteBuffer& message) {
    // Not in the arena: kernels read short inline arrays in place, where the string that has them was
    // allocated, and an arena aligns to 8 bytes alone.
    auto request = std::make_unique<Request>();
    auto& bytes = const_cast<grpc::ByteBuffer&>(message);
    if (!grpc::SerializationTraits<Request>::Deserialize(&bytes, request.get()).ok()) return nullptr;
    const Request* read = request.get();
    request_ = std::move(request);
    return read;
  }
  v1::OperationResult& result() { return *result_; }

  void begin(std::shared_ptr<OperationCall> call) {
    call_ = std::move(call);
    call_->begin();
  }
  /// Answers, with the result where the status is OK.
  void end(grpc::Status status) {
    bool owned = false;
    if (status.ok())
      status = grpc::SerializationTraits<v1::OperationResult>::Serialize(*result_, &answer_, &owned);
    Finish(std::move(status));
  }

 private:
  void OnCancel() override {
    if (call_ != nullptr) call_->cancel();
  }
  void OnDone() override { delete this; }
  // Without it each call's end is handed to a thread of gRPC's executor, which has to wake for it. Neither
  // reaction blocks.
  bool InternalInlineable() override { return true; }

  google::protobuf::ArenaOptions options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = block_.data();
    options.initial_block_size = block_.size();
    return options;
  }

  grpc::ByteBuffer& answer_;
  std::optional<OpenCall> counted_;
  alignas(std::max_align_t) std::array<char, 2048> block_;  // of a call with small messages all of it
  google::protobuf::Arena arena_;
  v1::OperationResult* result_ = nullptr;
  std::unique_ptr<google::protobuf::Message> request_;
  std::shared_ptr<OperationCall> call_;
};

}  // namespace cumulus::server

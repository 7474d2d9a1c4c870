#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "cumulus/v1/transfer.pb.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/staging_ring.h"
#include "server/runtime/transfer/transfer.h"

namespace cumulus::server {

/// One ReadBuffer call. Messages refer to the buffer's own memory on the CPU backend, and to staging slots on
/// a GPU; the next is made while one is written. The buffer lives until the last message is gone.
class Download final : public Transfer, public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  using FindRing = std::function<std::shared_ptr<StagingRing>(const Device&)>;

  Download(Runtime& runtime, FindRing find_ring, Options options, grpc::CallbackServerContext* context);
  /// Begins to write what `request` asks for, or answers what is wrong with it.
  void begin(const grpc::ByteBuffer& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  void finish(const grpc::Status& status) override { Finish(status); }
  /// A write that waits cannot be overtaken by a status: the call has to be cancelled.
  void give_up(const absl::Status& why) override;

  absl::Status take_request(const v1::ReadBufferRequest& request);
  /// Does what can be done now: writes the message that is ready, makes the next.
  void proceed();
  void write(grpc::ByteBuffer message);
  void make_next();
  void make_from_slot(StagingRing::Slot slot, std::size_t offset, std::size_t size);
  void made(std::size_t offset, const grpc::Slice& data);

  Runtime& runtime_;
  const FindRing find_ring_;
  grpc::CallbackServerContext* const context_;
  std::shared_ptr<Transfer> self_;  // until gRPC is done

  BufferHandle buffer_;
  Device* device_ = nullptr;
  std::shared_ptr<StagingRing> ring_;  // null where the buffer's memory is sent itself
  std::size_t chunk_bytes_ = 0;
  std::size_t end_ = 0;

  std::mutex mutex_;
  std::size_t next_ = 0;  // where the next message begins
  std::optional<grpc::ByteBuffer> ready_;
  bool making_ = false;
  bool writing_ = false;
  absl::Status given_up_;
  grpc::ByteBuffer written_;  // what StartWrite refers to
};

}  // namespace cumulus::server

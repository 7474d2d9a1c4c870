#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "server/runtime/runtime.h"
#include "server/runtime/transfer/chunk_message.h"
#include "server/runtime/transfer/staging_ring.h"
#include "server/runtime/transfer/transfer.h"

namespace cumulus::server {

/// One WriteBuffer call. Chunks go straight to where the buffer will be: into its memory on the CPU backend;
/// through staging slots, while the next chunk arrives, on a GPU. The next message is asked for once this one
/// has found its place, which is all the back-pressure there is. A call that fails leaves nothing behind.
class Upload final : public Transfer, public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  /// `find_ring` says which slots belong to a device.
  using FindRing = std::function<std::shared_ptr<StagingRing>(const Device&)>;

  Upload(Runtime& runtime, FindRing find_ring, Options options, grpc::ByteBuffer* response);
  /// Begins to read. The upload lives until gRPC is done with it and its copies are.
  void begin();

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void finish(const grpc::Status& status) override { Finish(status); }
  void give_up(const absl::Status& why) override { end(why); }

  void read_next();
  absl::Status take_message();
  absl::Status take_spec(const v1::WriteSpec& spec);
  absl::Status allocate();
  absl::Status check_chunk() const;
  absl::Status check_data() const;

  /// Put the chunk where it belongs, and go on.
  void place_directly();
  /// True where as many copies are on their way as one upload may have: the next that ends goes on.
  bool hold_back();
  void acquire_slot();
  void place_staged(StagingRing::Slot slot);
  /// Copies the chunk's data to `target`; an error where it is not what its checksum says.
  absl::Status copy_data(std::byte* target);
  void chunk_placed();
  void copied(const absl::Status& status);
  void publish_if_complete();
  void publish();

  Runtime& runtime_;
  const FindRing find_ring_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<Transfer> self_;  // until gRPC is done

  grpc::ByteBuffer message_;
  UploadChunk chunk_;  // its data lies in message_
  SessionHandle session_;
  Device* device_ = nullptr;
  std::shared_ptr<StagingRing> ring_;  // null where chunks need none
  SessionStore::NewBuffer buffer_;
  std::size_t total_bytes_ = 0;
  std::size_t received_bytes_ = 0;

  std::mutex copies_mutex_;
  static constexpr std::size_t kMaxSlots = 8;
  std::size_t copies_in_flight_ = 0;
  bool held_back_ = false;
  bool all_received_ = false;
  bool published_ = false;
};

}  // namespace cumulus::server

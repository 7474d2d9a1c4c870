#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "server/runtime/runtime.h"
#include "server/runtime/transfer/chunk_message.h"
#include "server/runtime/transfer/staging_ring.h"
#include "server/runtime/transfer/transfer.h"
#include "server/runtime/transfer/upload_target.h"

namespace cumulus::server {

/// One WriteBuffer call, which brings an array or a part of one. Chunks go straight to where the buffer will
/// be: into its memory on the CPU backend; through staging slots, while the next chunk arrives, on a GPU. The
/// next message is asked for once this one has found its place, which is all the back-pressure there is. A
/// call that fails leaves nothing behind; one that has brought its part waits for the others of its array.
class Upload final : public Transfer, public UploadStream, public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  /// `find_ring` says which slots belong to a device.
  using FindRing = std::function<std::shared_ptr<StagingRing>(const Device&)>;

  Upload(Runtime& runtime, JoinedUploads& joined, FindRing find_ring, Options options,
         grpc::ByteBuffer* response);
  ~Upload() override;
  /// Begins to read. The upload lives until gRPC is done with it and its copies are.
  void begin();

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  bool answer(const ResidentBuffer& buffer) override;
  void fail(const absl::Status& why) override { end(why); }
  void make_way() override;

 private:
  void finish(const grpc::Status& status) override { Finish(status); }
  void give_up(const absl::Status& why) override { end(why); }
  std::size_t moved_bytes() const override;
  std::int64_t moved_at() const override;

  void read_next();
  absl::Status take_message();
  absl::Status take_spec(const v1::WriteSpec& spec);
  absl::Status join(const v1::WriteSpec& spec, const SessionHandle& session,
                    const UploadTarget::Description& description);
  absl::StatusOr<Part> read_part(const v1::WriteSpec& spec) const;
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
  void complete_if_placed();

  Runtime& runtime_;
  JoinedUploads& joined_;
  const FindRing find_ring_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<Transfer> self_;  // until gRPC is done

  grpc::ByteBuffer message_;
  UploadChunk chunk_;  // its data lies in message_
  std::shared_ptr<UploadTarget> target_;
  std::atomic<const UploadTarget*> watched_ = nullptr;  // target_, for other threads
  std::shared_ptr<StagingRing> ring_;                   // null where chunks need none
  Part part_;
  bool claimed_ = false;
  std::size_t next_ = 0;  // byte of the array that comes next

  std::mutex copies_mutex_;
  static constexpr std::size_t kMaxSlots = 8;
  std::size_t copies_in_flight_ = 0;
  bool held_back_ = false;
  bool all_received_ = false;
  bool placed_ = false;
};

}  // namespace cumulus::server

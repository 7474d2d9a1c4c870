#pragma once

#include <functional>
#include <memory>
#include <span>

#include "cumulus/v1/shared_memory.pb.h"
#include "server/runtime/shared_memory/early_copy.h"
#include "server/runtime/shared_memory/shared_transfer.h"
#include "server/runtime/transfer/upload_target.h"

namespace cumulus::server {

/// One WriteShared call.
class SharedUpload : public SharedTransfer, public UploadStream {
 public:
  /// The buffer is written to `response` before the answer.
  SharedUpload(Runtime& runtime, std::shared_ptr<SharedLink> link, Options options, Answer answer,
               v1::Buffer* response);
  ~SharedUpload() override;

  /// Before begin(): a copy of what the call brings may be under way.
  virtual void use(std::shared_ptr<EarlyCopy> /*early*/) {}
  void begin(const v1::WriteSharedRequest& request);

  bool answer(const ResidentBuffer& buffer) override;
  void fail(const absl::Status& why) override { end(why); }
  void make_way() override {}  // nobody joins

 protected:
  /// That the region is what this upload needs; before memory is taken.
  virtual absl::Status prepare() { return absl::OkStatus(); }
  /// Takes the array, whose memory is there: now, or when the client says where it is.
  virtual absl::Status take_array() = 0;
  /// What memory the array is to lie in; null for the device's own.
  virtual std::function<BufferMemory()> provider() { return nullptr; }

  UploadTarget& target() { return *target_; }
  /// OK where the session and its device are still there.
  absl::Status check_target();
  /// INVALID_ARGUMENT where the array is larger than the region, in which it is to lie whole.
  absl::Status check_room();
  /// On a device that the host does not address: where the array's head is copied to once its first bytes lie
  /// there. It is what requests are checked by, and read where the kernels will read it: the client may have
  /// changed its own memory meanwhile.
  std::span<std::byte> head() const;
  /// Takes what the copy brings, the array and its head.
  void take_from(EarlyCopy& copy);
  /// The end of the one copy that brings the array and its head.
  void take_whole(const absl::Status& copied);
  /// All bytes lie in the array's memory, and its head in head().
  void complete();

 private:
  absl::Status start(const v1::WriteSharedRequest& request);
  absl::Status take_head();
  Part part() const { return {0, target_->total_bytes()}; }

  v1::Buffer* const response_;
  std::shared_ptr<UploadTarget> target_;
  bool claimed_ = false;
  HostMemory head_;  // of what lies on a GPU
};

}  // namespace cumulus::server

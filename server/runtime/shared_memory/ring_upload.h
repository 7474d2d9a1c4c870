#pragma once

#include <mutex>
#include <vector>

#include "server/runtime/shared_memory/shared_upload.h"

namespace cumulus::server {

/// An upload through a ring. A slot's data is read once, into the array's memory: what is looked at is looked
/// at there, as the client may write to its slots at any time.
class RingUpload final : public SharedUpload {
 public:
  using SharedUpload::SharedUpload;

 private:
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
  absl::Status take_array() override;
  /// OK where the message says a piece of the array that has not come yet, which is then counted as come.
  absl::Status take_piece(const SharedMemoryMessage& message);
  void place(const SharedMemoryMessage& message);
  void placed(std::uint32_t slot, std::size_t bytes);

  std::vector<bool> came_;  // by piece; of the link's thread
  std::mutex mutex_;
  std::size_t left_ = 0;  // pieces that are not in the array's memory
};

}  // namespace cumulus::server

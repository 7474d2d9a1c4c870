#pragma once

#include <cstddef>
#include <mutex>

#include "cumulus/v1/shared_memory.pb.h"
#include "server/runtime/shared_memory/shared_transfer.h"

namespace cumulus::server {

/// One ReadShared call: each slot that the client gives is filled with the next piece.
class RingDownload final : public SharedTransfer {
 public:
  using SharedTransfer::SharedTransfer;

  void begin(const v1::ReadSharedRequest& request);

 private:
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
  absl::Status start(const v1::ReadSharedRequest& request);
  void filled(std::uint32_t slot, std::size_t offset, std::size_t bytes);

  BufferHandle buffer_;
  Device* device_ = nullptr;
  std::size_t next_ = 0;  // of the link's thread: where the next piece begins
  std::size_t end_ = 0;
  std::mutex mutex_;
  std::size_t left_ = 0;  // bytes that the client does not have
};

}  // namespace cumulus::server

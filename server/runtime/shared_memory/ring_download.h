#pragma once

#include <cstddef>

#include "server/runtime/shared_memory/shared_download.h"

namespace cumulus::server {

/// A download through a ring: each slot that the client gives is filled with the next piece.
class RingDownload final : public SharedDownload {
 public:
  using SharedDownload::SharedDownload;

 private:
  absl::Status prepare() override;
  std::uint32_t given_slots() const override;
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
  void copied(std::uint32_t slot, std::size_t offset, std::size_t bytes);

  std::size_t next_ = 0;  // of the link's thread: where the next piece begins
};

}  // namespace cumulus::server

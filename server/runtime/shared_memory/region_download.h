#pragma once

#include <cstddef>

#include "server/runtime/shared_memory/shared_download.h"

namespace cumulus::server {

/// A download into an array's region: what is read is copied once, to where the client has its array.
class RegionDownload final : public SharedDownload {
 public:
  using SharedDownload::SharedDownload;

 private:
  absl::Status prepare() override;
  /// Copies on the link's thread.
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
  void copy(std::size_t offset, std::size_t bytes);

  bool given_ = false;  // by the client: of the link's thread
};

}  // namespace cumulus::server

#pragma once

#include "server/runtime/shared_memory/shared_upload.h"

namespace cumulus::server {

/// An upload of an array that was born in a region of its own. On the CPU backend the region becomes the
/// buffer's memory, once nobody can write to it any more; a GPU copies from it.
class RegionUpload final : public SharedUpload {
 public:
  using SharedUpload::SharedUpload;

 private:
  absl::Status prepare() override;
  std::function<BufferMemory()> provider() override;
  absl::Status take_array() override;
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
};

}  // namespace cumulus::server

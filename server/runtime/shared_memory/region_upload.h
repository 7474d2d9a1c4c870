#pragma once

#include <memory>
#include <utility>

#include "server/runtime/shared_memory/shared_upload.h"

namespace cumulus::server {

/// An upload of an array that was born in a region of its own. On the CPU backend the region becomes the
/// buffer's memory, once nobody can write to it any more; a GPU copies from it.
class RegionUpload final : public SharedUpload {
 public:
  using SharedUpload::SharedUpload;
  void use(std::shared_ptr<EarlyCopy> early) override { early_ = std::move(early); }

 private:
  absl::Status prepare() override;
  std::function<BufferMemory()> provider() override;
  absl::Status take_array() override;
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;

  std::shared_ptr<EarlyCopy> early_;  // until it is taken
};

}  // namespace cumulus::server

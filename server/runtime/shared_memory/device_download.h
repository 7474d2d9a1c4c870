#pragma once

#include "server/runtime/shared_memory/shared_download.h"

namespace cumulus::server {

/// A download into a region of GPU memory: one copy within the device.
class DeviceDownload final : public SharedDownload {
 public:
  using SharedDownload::SharedDownload;

 private:
  absl::Status prepare() override;
  void bring() override;
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
};

}  // namespace cumulus::server

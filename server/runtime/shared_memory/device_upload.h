#pragma once

#include "server/runtime/shared_memory/shared_upload.h"

namespace cumulus::server {

/// An upload of what a client has written to a region of GPU memory. It is copied within the device, and
/// looked at there: the client may write to its region at any time.
class DeviceUpload final : public SharedUpload {
 public:
  using SharedUpload::SharedUpload;

 private:
  absl::Status prepare() override;
  absl::Status take_array() override;
  absl::Status take_doorbell(const SharedMemoryMessage& message) override;
};

}  // namespace cumulus::server

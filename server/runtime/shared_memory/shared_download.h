#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cumulus/v1/shared_memory.pb.h"
#include "server/runtime/shared_memory/shared_transfer.h"
#include "server/runtime/transfer/read_range.h"

namespace cumulus::server {

/// One ReadShared call.
class SharedDownload : public SharedTransfer {
 public:
  using SharedTransfer::SharedTransfer;

  /// Who gives: the client has given already what the server is to have once the download has begun.
  enum class Gives { kAfterBegin, kWithTheCall };
  void begin(const v1::ReadSharedRequest& request, Gives gives = Gives::kAfterBegin);

 protected:
  /// That the region is what this download needs; before the client may use it.
  virtual absl::Status prepare() = 0;
  /// Brings the bytes, of which there are some.
  virtual void bring();
  /// How many slots a client gives with its call.
  virtual std::uint32_t given_slots() const { return 1; }
  /// What is read.
  const ReadRange& range() const { return range_; }
  /// These bytes of the buffer lie in the region, and the client is told; with the last the call is answered.
  void filled(std::uint32_t slot, std::size_t offset, std::size_t bytes);

 private:
  absl::Status start(const v1::ReadSharedRequest& request);
  absl::Status take_given_slots();

  Gives gives_ = Gives::kAfterBegin;
  ReadRange range_;
  std::atomic<std::size_t> left_ = 0;  // bytes that the client does not have
};

}  // namespace cumulus::server

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "library/brief_wait.h"
#include "library/connection.h"
#include "library/shared_memory/region.h"

namespace cumulus {

/// A call that uses a region of shared memory: what the server says on the region's connection, to any number
/// of threads, until the call has ended.
class RegionCall : public std::enable_shared_from_this<RegionCall> {
 public:
  /// The region outlives the call.
  RegionCall(Connection& connection, const SharedRegion& region);
  virtual ~RegionCall();
  RegionCall(const RegionCall&) = delete;
  RegionCall& operator=(const RegionCall&) = delete;

  const SharedRegion& region() const { return region_; }
  void start(const std::string& method, const grpc::ByteBuffer& request, const CallOptions& options,
             const CallContext& context);

  /// Waits until the server lets the transfer begin; false where the call ends before.
  bool wait_until_begun();
  /// The next message, for one of the threads that wait; empty once no more comes.
  std::optional<SharedMemoryMessage> next();
  bool send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset, std::size_t bytes) const;
  /// Ends next() for every thread, once what has come is taken.
  void stop();

  /// Waits for the call's end; once.
  absl::StatusOr<grpc::ByteBuffer> wait() { return get_soon(answer_.get_future()); }
  /// After the call's end: whether the region is as before for the next call, with nothing of this one on its
  /// way, neither messages nor bytes. `status` is what wait() said.
  bool leaves_nothing(const absl::Status& status) const;

 protected:
  Connection& connection() { return connection_; }

 private:
  Connection& connection_;
  const SharedRegion& region_;
  const int wake_;
  std::atomic<bool> stopped_ = false;
  std::mutex begin_mutex_;
  bool begun_ = false;
  std::promise<absl::StatusOr<grpc::ByteBuffer>> answer_;
};

/// Whether a transfer that ended so through shared memory is to go another way instead: the region was the
/// reason, or the server is gone and may come back without it.
bool belongs_to_streams(const absl::Status& status);

}  // namespace cumulus

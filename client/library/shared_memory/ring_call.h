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

#include "library/connection.h"
#include "library/shared_memory/shared_memory.h"

namespace cumulus {

/// A call that uses a ring: what the server says on the ring's connection, to any number of threads, until
/// the call has ended.
class RingCall : public std::enable_shared_from_this<RingCall> {
 public:
  /// Null where there is no ring to be had.
  static std::shared_ptr<RingCall> make(Connection& connection);
  ~RingCall();
  RingCall(const RingCall&) = delete;
  RingCall& operator=(const RingCall&) = delete;

  const SharedRegion& region() const { return *ring_->region; }
  void start(const std::string& method, const grpc::ByteBuffer& request, const CallOptions& options,
             const CallContext& context);

  /// Waits until the server lets the transfer begin; false where the call ends before.
  bool wait_until_begun();
  /// The next message, for one of the threads that wait; empty once no more comes.
  std::optional<SharedMemoryMessage> next();
  bool send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset, std::size_t bytes) const;
  /// Ends next() for every thread, once what has come is taken.
  void stop();

  /// Ends the call, by the end of its ring; from any thread, and at any time.
  void abandon();

  /// Waits for the call's end. The ring is kept for the next transfer where it is as before.
  absl::StatusOr<grpc::ByteBuffer> finish();

 private:
  RingCall(Connection& connection, std::unique_ptr<SharedMemory::Ring> ring);
  bool is_reusable(const absl::Status& status) const;

  Connection& connection_;
  std::mutex ring_mutex_;  // between finish() and abandon()
  std::unique_ptr<SharedMemory::Ring> ring_;
  const int wake_;
  std::atomic<bool> stopped_ = false;
  std::mutex begin_mutex_;
  bool begun_ = false;
  std::promise<absl::StatusOr<grpc::ByteBuffer>> answer_;
};

/// Whether a transfer that ended so through a ring is to go over streams instead: the ring was the reason, or
/// the server is gone and may come back without it.
bool belongs_to_streams(const absl::Status& status);

}  // namespace cumulus

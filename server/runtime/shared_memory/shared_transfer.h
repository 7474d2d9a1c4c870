#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/link.h"
#include "server/runtime/transfer/transfer.h"

namespace cumulus::server {

/// A call that moves an array through a region that the server shares with the caller. It ends with the
/// region's connection; and where it fails once the client may use the region, that is closed, so that no
/// copy that is still on its way meets the next transfer.
class SharedTransfer : public Transfer, public RingUser {
 public:
  /// Says how the transfer ended, to who asked for it.
  struct Answer {
    /// `begun`: the client may have used the region, or the server.
    std::function<void(const grpc::Status&, bool begun)> give;
    bool over_the_link = false;  // which has to be there still
  };
  SharedTransfer(Runtime& runtime, std::shared_ptr<SharedLink> link, Options options, Answer answer);

  absl::Status take(const SharedMemoryMessage& message) final;
  void hung_up(const absl::Status& why) override { end(why); }
  void cancel() { end(absl::CancelledError("the client cancelled the transfer")); }

 protected:
  /// What the client says once the pieces have begun; as RingUser::take.
  virtual absl::Status take_doorbell(const SharedMemoryMessage& message) = 0;
  /// Begins the call: `start` says what is wrong with it, and then that is the answer.
  void run(const std::function<absl::Status()>& start);
  /// NOT_FOUND or FAILED_PRECONDITION where the region cannot be used.
  absl::Status take_region();
  SharedRegion& region() { return *region_; }
  SharedLink& link() { return *link_; }
  /// Tells the client that it may use its slots, and waits for it.
  void begin_pieces();
  /// That the server uses them: the client has given them.
  void begin_given_pieces() { begun_ = true; }
  void send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset, std::size_t bytes);
  /// That the client gives a slot to the server. INVALID_ARGUMENT where it is not the client's.
  absl::Status take_slot(std::uint32_t slot);
  void give_back_slot(std::uint32_t slot);

  /// What a client is told that rings where nothing is said.
  static absl::Status unexpected_doorbell(const SharedMemoryMessage& message);

  Runtime& runtime() { return runtime_; }

 private:
  void finish(const grpc::Status& status) final;
  void give_up(const absl::Status& why) override { end(why); }

  Runtime& runtime_;
  const std::shared_ptr<SharedLink> link_;
  const Answer answer_;
  std::shared_ptr<SharedRegion> region_;
  bool attached_ = false;
  std::atomic<bool> begun_ = false;
  std::atomic<std::uint32_t> own_slots_ = 0;  // a bit for each slot that the server has
};

}  // namespace cumulus::server

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cumulus/v1/shared_memory.pb.h"
#include "library/brief_wait.h"
#include "library/cancellation.h"
#include "library/connection.h"
#include "library/shared_memory/region.h"

namespace cumulus {

/// A call that uses a region of shared memory: what the server says on the region's connection, to any number
/// of threads, until the call has ended. It goes over that connection itself where the server takes it there,
/// else by gRPC.
class RegionCall : public std::enable_shared_from_this<RegionCall> {
 public:
  /// The region outlives the call.
  RegionCall(Connection& connection, const SharedRegion& region);
  virtual ~RegionCall();
  RegionCall(const RegionCall&) = delete;
  RegionCall& operator=(const RegionCall&) = delete;

  const SharedRegion& region() const { return region_; }
  /// That one copy of so many bytes is all that the server does before it answers. Before start().
  void expect_copy(std::size_t bytes);
  /// That a KNOCK has told of this upload. Before start().
  void note_knock() { knocked_ = true; }
  /// The request without its region.
  void start(v1::WriteSharedRequest request, const CallOptions& options, const CallContext& context);
  void start(v1::ReadSharedRequest request, const CallOptions& options, const CallContext& context);

  /// Waits until the server lets the transfer begin; false where the call ends before.
  bool wait_until_begun();
  /// Whether that is so; false where another thread just waits for it.
  bool begun();
  /// After start(): a download whose slots, or array, the server has with the call.
  bool gave() const { return gave_; }
  /// The next message, for one of the threads that wait; empty once no more comes.
  std::optional<SharedMemoryMessage> next();
  /// Likewise, where it has come already. After begun().
  std::optional<SharedMemoryMessage> next_now();
  bool send(SharedMemoryMessage::Kind kind, std::uint32_t slot, std::size_t offset, std::size_t bytes) const;
  /// Ends next() for every thread, once what has come is taken.
  void stop();

  /// Waits so long at most for the call's end, when no thread is in next() any more; whether it has ended.
  bool wait_for(absl::Duration limit);
  /// Likewise, however long it takes; once. The answer's bytes.
  absl::StatusOr<std::string> wait();
  /// After the call's end: whether the region is as before for the next call, with nothing of this one on its
  /// way, neither messages nor bytes. `status` is what wait() said.
  bool leaves_nothing(const absl::Status& status) const;
  /// Likewise: the call ended here, and its answer may come to the region's connection yet.
  bool was_given_up() const { return given_up_; }
  /// Likewise: whether its transfer is to go another way instead: the region was the reason, or the server is
  /// gone and may come back without it, or has no room, for which other ways wait.
  bool goes_another_way(const absl::Status& status) const;

 protected:
  Connection& connection() { return connection_; }

 private:
  enum class Until { kStopped, kAnswered };

  template <class Request>
  void start(SharedMemoryCall what, Request request, const CallOptions& options, const CallContext& context);
  void call_over_region(SharedMemoryCall what, std::string_view request, const CallOptions& options);
  void cancel();
  std::optional<SharedMemoryMessage> next(Until until, absl::Time limit);
  /// True where a message of the transfer has come; an ANSWER is taken.
  bool receive(SharedMemoryMessage& message, bool& nothing);
  /// Of a call over the region: ends it here where it is cancelled or late.
  void look_at_the_clock();
  int poll_milliseconds(absl::Time limit) const;
  void give_up(const absl::Status& why);
  void end(absl::StatusOr<std::string> answer);

  Connection& connection_;
  const SharedRegion& region_;
  const int wake_;
  std::chrono::microseconds looks_for_ = BriefWait::kBriefly;
  bool over_region_ = false;
  bool gave_ = false;
  bool knocked_ = false;
  std::atomic<bool> ended_before_begin_ = false;  // of such a call, as its answer says
  absl::Time deadline_ = absl::InfiniteFuture();  // of such a call
  std::atomic<bool> cancelled_ = false;           // likewise
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> answered_ = false;
  std::atomic<bool> stopped_ = false;
  std::mutex begin_mutex_;
  bool begun_ = false;
  std::promise<absl::StatusOr<std::string>> answer_;
  std::future<absl::StatusOr<std::string>> future_ = answer_.get_future();
  CancellationScope scope_;
};

/// Whether a call's transfer is to go through streams instead: the region was the reason, or the server is
/// gone and may come back without it.
bool belongs_to_streams(const absl::Status& status);

}  // namespace cumulus

#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "server/runtime/call_deadline.h"
#include "server/runtime/drain.h"
#include "server/runtime/metrics/telemetry.h"
#include "server/runtime/principal.h"
#include "server/runtime/transfer/transfer_shares.h"

namespace cumulus::server {

/// What uploads and downloads share: a call that ends once, whoever wants it to end (the client, an error,
/// the device, the clock), and is never touched after that.
class Transfer : public std::enable_shared_from_this<Transfer> {
 public:
  struct Options {
    std::string_view method;
    std::string client;  // the peer, for the log
    Principal principal;
    CallDeadline deadline;
    absl::Duration max_stall;
    std::shared_ptr<TransferShares> shares;
    Telemetry& telemetry;
    TraceContext trace = {};
    const Drain* drain = nullptr;
    absl::Status handles = {};  // why those that the call names cannot be this instance's
    std::size_t min_rate = 0;   // bytes a second, while the client is waited for; of uploads
  };

  explicit Transfer(Options options);
  virtual ~Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Ends the transfer where its deadline has passed, where the client has kept it waiting too long, or where
  /// the server's drain is over.
  void check(absl::Time now);

 protected:
  /// Finishes the call; called once.
  virtual void finish(const grpc::Status& status) = 0;
  /// Ends a transfer that the client does not move on.
  virtual void give_up(const absl::Status& why) = 0;

  /// Runs `operation`, which may use the reactor and the call's messages; does not where the call has ended.
  void use_call(const std::function<void()>& operation);
  /// As use_call, of an operation that waits for the client until client_moved().
  void wait_for_client(const std::function<void()>& operation);
  void client_moved();
  /// Ends the call; false where it has ended already.
  bool end(const absl::Status& status);
  bool ended() const;
  const Principal& principal() const { return options_.principal; }
  /// First of all. NOT_FOUND where the call's handles are another instance's; RESOURCE_EXHAUSTED where the
  /// principal has as many transfers as it may.
  absl::Status take_share();
  /// That `bytes` are to come. UNAVAILABLE where the principal's uploads would be more than its
  /// max_upload_bytes, which is `fallback` where it has none.
  absl::StatusOr<TransferShares::Announcement> announce(std::size_t bytes, std::size_t fallback) const;

  /// What this transfer and those that belong to it have moved, and when, in nanoseconds of steady_now():
  /// what the limits of stalls and of the rate go by. Called on any thread.
  virtual std::size_t moved_bytes() const { return bytes_; }
  virtual std::int64_t moved_at() const { return 0; }

  void count_bytes(std::size_t bytes) { bytes_ += bytes; }
  void set_request_id(std::string id) { request_id_ = std::move(id); }

 private:
  static constexpr std::int64_t kNotWaiting = std::numeric_limits<std::int64_t>::max();

  void finish_and_log(const absl::Status& status);
  /// Of the wait that goes on, what belongs to the measurement.
  std::int64_t current_wait(std::int64_t now) const;
  void check_rate(absl::Time now);

  const Options options_;
  const absl::Time begin_time_;
  std::string request_id_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::int64_t> waiting_since_ = kNotWaiting;  // in nanoseconds of steady_now()
  // Since when the rate is measured, for how long the client was waited for since then, and what had come.
  std::atomic<std::int64_t> measured_since_ = 0;
  std::atomic<std::int64_t> waited_ = 0;
  std::size_t bytes_then_ = 0;
  TransferShares::Share share_;
  mutable std::mutex mutex_;
  int uses_ = 0;        // operations that are running
  bool ended_ = false;  // no operation begins any more
  absl::Status status_;
};

/// Checks all transfers from time to time.
class TransferWatch {
 public:
  explicit TransferWatch(absl::Duration interval);
  ~TransferWatch();
  TransferWatch(const TransferWatch&) = delete;
  TransferWatch& operator=(const TransferWatch&) = delete;

  void add(std::weak_ptr<Transfer> transfer);

 private:
  void run();

  const absl::Duration interval_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::list<std::weak_ptr<Transfer>> transfers_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cumulus::server

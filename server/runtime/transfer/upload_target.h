#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cumulus/v1/transfer.pb.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/transfer_shares.h"

namespace cumulus::server {

/// A call that brings an array, or a part of one.
class UploadStream {
 public:
  virtual ~UploadStream() = default;
  /// Ends the call with the buffer that its array has become; false where it had ended before.
  virtual bool answer(const ResidentBuffer& buffer) = 0;
  virtual void fail(const absl::Status& why) = 0;
  /// Ends the call, as another brings the same part.
  virtual void make_way() = 0;
};

/// Bytes of an array: from `begin` on, before `end`.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// An array on its way, to which one stream brings all or several a part each. The streams hold it: with the
/// last of them it is gone, and with it what it had reserved. Thread-safe.
class UploadTarget {
 public:
  /// What the buffer is to be.
  struct Description {
    ArrayShape shape;
    absl::Duration ttl;
    bool evictable = false;

    friend bool operator==(const Description&, const Description&) = default;
  };
  UploadTarget(Runtime& runtime, SessionHandle session, Description description);
  /// What `spec` asks for, where the server's limits allow it.
  static absl::StatusOr<Description> read_description(const Runtime& runtime, const v1::WriteSpec& spec);

  using Announce = std::function<absl::StatusOr<TransferShares::Announcement>(std::size_t bytes)>;
  /// Takes memory for the array when first called, and later answers as then: of the device, or what
  /// `provide` has once the bytes are counted.
  absl::Status allocate(const Announce& announce, const std::function<BufferMemory()>& provide = nullptr);

  /// That `stream` brings `part`. INVALID_ARGUMENT where it overlaps another's; where it is the same as
  /// another's, that one ends, and this one is to come again: UNAVAILABLE.
  absl::Status claim(const Part& part, const std::shared_ptr<UploadStream>& stream);
  /// The stream that claimed `part` is gone, with what it brought.
  void release(const Part& part);
  /// All of `part` lies in the memory. With the last part, the buffer is published and every stream answered.
  void complete(const Part& part);
  /// All parts have come, or there was no memory: nobody can join any more.
  bool over() const;

  const Session& session() const { return *session_; }
  Device& device() const { return *session_->slot->device; }
  const Description& description() const { return description_; }
  std::size_t total_bytes() const { return total_bytes_; }
  /// Of allocate(); streams write to their parts of it at the same time.
  BufferMemory& memory() { return buffer_.memory; }
  /// Keeps what `data`, of byte `offset` on, has of the buffer's head.
  void keep_head(std::size_t offset, std::span<const std::byte> data);

  /// What all streams have brought, and when the last bytes came, in nanoseconds of steady_now().
  void count_bytes(std::size_t bytes);
  std::size_t moved_bytes() const { return moved_bytes_; }
  std::int64_t moved_at() const { return moved_at_; }

 private:
  struct Claim {
    std::size_t end;
    std::weak_ptr<UploadStream> stream;
    bool complete = false;
  };

  absl::Status allocate_once(const Announce& announce, const std::function<BufferMemory()>& provide);
  /// The streams, once all bytes are there; empty before, and ever after.
  std::vector<std::shared_ptr<UploadStream>> take_streams_if_complete(const Part& part);
  void publish(const std::vector<std::shared_ptr<UploadStream>>& streams);

  Runtime& runtime_;
  const SessionHandle session_;
  const Description description_;
  const std::size_t total_bytes_;
  SessionStore::NewBuffer buffer_;
  TransferShares::Announcement announcement_;
  std::atomic<std::size_t> moved_bytes_ = 0;
  std::atomic<std::int64_t> moved_at_ = 0;

  mutable std::mutex mutex_;  // of what follows
  std::optional<absl::Status> allocated_;
  std::map<std::size_t, Claim> claims_;  // by their first byte; they do not overlap
  bool published_ = false;
};

/// The uploads that several streams may join, by session and id. Thread-safe.
class JoinedUploads {
 public:
  using Make = std::function<std::shared_ptr<UploadTarget>()>;
  /// The one of that name that some stream still holds, or a new one.
  std::shared_ptr<UploadTarget> find_or_make(const std::string& session, const std::string& id,
                                             const Make& make);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<UploadTarget>> targets_;
};

}  // namespace cumulus::server

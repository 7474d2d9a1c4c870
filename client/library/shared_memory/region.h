#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "proto/shared_memory.h"

namespace cumulus {

/// Memory that the server made and shares with this process, and the connection that it lives as long as.
class SharedRegion {
 public:
  /// Asks the server at `address` (a path, or @NAME of the abstract namespace) for what `want` says.
  /// FAILED_PRECONDITION where it refuses, with its reasons; UNAVAILABLE where no server of this user is
  /// there.
  /// `like` is the id of a region of the same connection that the server knows, where there is one.
  static absl::StatusOr<std::unique_ptr<SharedRegion>> open(const std::string& address,
                                                            const SharedMemoryMessage& want,
                                                            const std::string& like = "");
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  const std::string& id() const { return *id_; }
  /// The same, for who is to notice that the region is gone.
  const std::shared_ptr<const std::string>& shared_id() const { return id_; }
  /// Where it is mapped; empty where it is GPU memory.
  std::span<std::byte> memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return file_; }
  std::span<std::byte> slot(std::uint32_t index) const {
    return memory_.subspan(index * kSharedSlotBytes, kSharedSlotBytes);
  }
  /// The first `bytes` of it, to be written to, by one thread at a time.
  std::span<std::byte> slot_to_write(std::uint32_t index, std::size_t bytes) const {
    const std::span<std::byte> part = slot(index).first(bytes);
    mapped_.prepare(index, part);
    return part;
  }
  int socket() const { return socket_; }
  /// Of an array's region: an upload of it copies nothing, and then nobody writes to it any more.
  bool becomes_the_servers() const { return becomes_the_servers_; }
  /// What is written to the memory from now on is seen here only. False, and all is as before, where that
  /// cannot be.
  bool make_private() const;
  /// In its place is other memory, of zeros, that nobody shares.
  void replace_memory() const;
  /// Ends the connection; the memory stays mapped.
  void hang_up() const;

  /// False where the connection is gone.
  bool send(const SharedMemoryMessage& message, std::string_view text = {}) const;
  /// Whether the server takes CALL, once it knows whose the region is.
  bool takes_calls() const { return takes_calls_ && known_; }
  /// Whether a CALL may give with it what BEGIN would ask for.
  bool takes_gifts() const { return takes_gifts_; }
  /// Whether KNOCK may come, and pieces smaller than a slot.
  bool takes_knocks() const { return takes_knocks_; }
  /// Whether a KNOCK may tell of an upload, so that its copy begins.
  bool takes_early_copies() const { return takes_early_copies_; }
  /// A call of gRPC's that names the region has ended well. False where the server knew it before.
  bool note_known() const { return !known_.exchange(true); }
  /// Nothing has come that nobody has taken, and the connection is there.
  bool quiet() const;

 private:
  explicit SharedRegion(int socket) : socket_(socket) {}
  absl::Status take_answer();
  absl::Status map();

  const int socket_;
  int file_ = -1;
  bool becomes_the_servers_ = false;
  bool takes_calls_ = false;
  bool takes_gifts_ = false;
  bool takes_knocks_ = false;
  bool takes_early_copies_ = false;
  mutable std::atomic<bool> known_ = false;
  std::shared_ptr<const std::string> id_;
  std::size_t bytes_ = 0;
  std::span<std::byte> memory_;
  mutable MappedSlots mapped_;  // of what this process does, not of what is in it
};

}  // namespace cumulus

#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/message_lite.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/core/memory.h"
#include "server/runtime/descriptor.h"

namespace cumulus::server {

/// One end of a connection between two of this machine's processes. Messages stay apart, and each may bring
/// an open file along.
class Channel {
 public:
  /// More than this does not travel in one message.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{96} << 10;

  Channel() = default;
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}
  /// Both ends. RESOURCE_EXHAUSTED where the process has no descriptors left.
  static absl::StatusOr<std::pair<Channel, Channel>> pair();

  /// False where the other end is gone.
  bool send(const google::protobuf::MessageLite& message, const Descriptor& file = {}) const;
  /// Whether receive() would find a message, or that the other end is gone; waits for at most `limit`.
  bool wait(std::chrono::milliseconds limit) const;
  /// Waits for a message. False where the other end is gone or sent something else.
  bool receive(google::protobuf::MessageLite& message, Descriptor* file = nullptr) const;

  const Descriptor& socket() const { return socket_; }
  void close() { socket_.close(); }

 private:
  Descriptor socket_;
};

/// The pieces, one after another, in memory that another process can map and nobody can change.
absl::StatusOr<Descriptor> sealed_copy(std::span<const std::string_view> pieces);
/// Zeroed memory that another process can map and write, of a size that stays.
absl::StatusOr<Descriptor> shared_memory(std::size_t bytes);
/// The memory of shared_memory(bytes) as it is, once nobody can write it any more. INTERNAL where somebody
/// still can.
absl::StatusOr<HostMemory> map_finished(const Descriptor& file, std::size_t bytes);

/// A mapping of `file`, until this ends.
class Mapping {
 public:
  enum class Access { kRead, kWrite };
  /// Throws std::bad_alloc.
  Mapping(const Descriptor& file, std::size_t bytes, Access access);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
};

}  // namespace cumulus::server

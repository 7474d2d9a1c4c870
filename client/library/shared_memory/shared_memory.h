#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "library/connection_count.h"
#include "library/shared_memory/arrays.h"
#include "library/shared_memory/region.h"
#include "library/shared_memory/streaming_copy.h"

namespace cumulus {

/// Below, a call of one stream is over before the doorbells of shared memory are.
inline constexpr std::size_t kMinSharedBytes = std::size_t{256} << 10;

/// Whether a connection's target is this machine by its name: a Unix socket, localhost or a loopback address.
bool is_on_this_machine(const std::string& target);

/// The memory that one connection's transfers share with its server. Thread-safe.
class SharedMemory {
 public:
  /// A transfer's ring, until it is given back or ends.
  struct Ring {
    std::unique_ptr<SharedRegion> region;
    bool proven = false;  // has brought an array: the server behind the socket is that of the connection
  };

  /// `wanted`: else there is never any.
  explicit SharedMemory(bool wanted) : wanted_(wanted) {}

  /// As Capabilities.shared_memory_socket says.
  void set_socket(const std::string& address);
  std::string socket() const;

  /// As SharedRegion::open, like a region that the server knows.
  absl::StatusOr<std::unique_ptr<SharedRegion>> open(const SharedMemoryMessage& want);
  /// The server knows whose the region of that id is, while there is one.
  void note_known(const std::shared_ptr<const std::string>& id);

  /// A ring that no other transfer uses; null where there is none, and a transfer goes over streams.
  std::unique_ptr<Ring> take_ring();
  void give_back(std::unique_ptr<Ring> ring);
  /// The server does not know a ring that it has just made: it is not the one behind the socket.
  void forget_socket();

  /// The arrays that allocate_shared_array has made; they may outlive the connection.
  const std::shared_ptr<SharedArrays>& arrays() const { return arrays_; }

  /// How many threads copy.
  ConnectionCount& upload_threads() { return upload_threads_; }
  ConnectionCount& download_threads() { return download_threads_; }
  CopyChoice& download_copies() { return download_copies_; }

 private:
  static constexpr std::size_t kMaxRings = 4;

  const bool wanted_;
  const std::shared_ptr<SharedArrays> arrays_ = std::make_shared<SharedArrays>();
  ConnectionCount upload_threads_;
  ConnectionCount download_threads_;
  CopyChoice download_copies_;
  mutable std::mutex mutex_;  // of what follows
  std::string socket_;
  std::vector<std::weak_ptr<const std::string>> known_;  // regions' ids
  std::vector<std::unique_ptr<Ring>> free_;
  std::size_t taken_ = 0;
};

}  // namespace cumulus

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/session.h"
#include "cumulus/v1/array.pb.h"
#include "library/session_state.h"

namespace cumulus {

/// An array that can be uploaded again.
struct UploadRecipe {
  ArrayView array;  // of the caller's memory
  std::shared_ptr<const void> keep;
  std::optional<absl::Duration> ttl;
  bool evictable = false;
  std::uint32_t checksum = 0;  // Uploaded::checksum
};

/// A run of an operation, and the buffers that came of it: it makes them again, all at once.
struct Production {
  Operation operation;
  RunOptions options;
  int depth = 1;  // of productions before it, and it
  std::vector<std::pair<std::string, std::weak_ptr<BufferState>>> outputs =
      {};  // by their names in the result
};

/// What a Buffer, the operations that read it and the productions that need it share.
struct BufferState {
  BufferState(std::shared_ptr<SessionState> its_session, ElementType its_type, Shape its_shape,
              std::int64_t its_bytes)
      : session(std::move(its_session)), type(its_type), shape(std::move(its_shape)), size_bytes(its_bytes) {}

  const std::shared_ptr<SessionState> session;
  const ElementType type;
  const Shape shape;
  const std::int64_t size_bytes;
  // How to make it again. Neither: not at all. Written before anybody shares the state.
  std::optional<UploadRecipe> upload;
  std::shared_ptr<const Production> production;

  mutable std::mutex mutex;
  std::string name;
  int generation = 0;     // of the lease under which it has that name; kNowhere: of none
  bool released = false;  // no handle is left

  static constexpr int kNowhere = -1;
};

/// What it is called now.
inline std::string name_of(const BufferState& buffer) {
  const std::lock_guard lock(buffer.mutex);
  return buffer.name;
}

/// Makes the handles that only the library may make.
class BufferAccess {
 public:
  /// Of a buffer that lies on the server of `lease`.
  static absl::StatusOr<Buffer> make(const std::shared_ptr<SessionState>& session, const Lease& lease,
                                     const v1::Buffer& buffer);
  static const std::shared_ptr<BufferState>& state(const Buffer& buffer) { return buffer.state_; }
};

/// Nobody is told of a failure: the session's end releases the buffer then.
void delete_buffer(const Lease& lease, const std::string& name);

/// The names of `buffers` under `lease`; empty where one of the session has to be made again first. NOT_FOUND
/// where that must not be, as its handle is gone.
absl::StatusOr<std::optional<std::vector<std::string>>> names_under(
    const SessionState& session, const Lease& lease,
    const std::vector<std::shared_ptr<BufferState>>& buffers);

/// Blocks. Makes those of `buffers` again that are not there under `lease`, of a session that is re-created.
absl::Status restore(SessionState& session, const Lease& lease,
                     const std::vector<std::shared_ptr<BufferState>>& buffers, const Outage& outage);

/// As Session::download.
absl::Status download_into(const std::shared_ptr<BufferState>& buffer, std::span<std::byte> destination,
                           const DownloadOptions& options);

}  // namespace cumulus

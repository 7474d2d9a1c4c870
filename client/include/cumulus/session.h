#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cumulus/array.h"
#include "cumulus/operation.h"

namespace cumulus {

struct BufferState;
class SessionState;

/// An array on the server, immutable. Movable; put it into a std::shared_ptr to share it. Its
/// destructor releases the server's memory without waiting; a call that still reads the buffer is not
/// disturbed once it has reached the server. A buffer is lost, and calls that name it answer NOT_FOUND,
/// once its session is gone, unless that is one that is made again (SessionOptions::recreate).
class Buffer {
 public:
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::string name() const;  ///< on the server now; another one once it has been made again
  ElementType type() const;
  const Shape& shape() const;
  std::int64_t size_bytes() const;

 private:
  friend class BufferAccess;
  explicit Buffer(std::shared_ptr<BufferState> state);
  void release();

  std::shared_ptr<BufferState> state_;
};

struct SessionOptions {
  /// The lease; absent: the server's default. At most Capabilities::max_ttl.
  std::optional<absl::Duration> ttl = std::nullopt;
  /// Bytes that the session may hold; 0: the server's default, which is also the maximum.
  std::int64_t quota_bytes = 0;
  /// DeviceInfo::name; empty: the one with the fewest sessions and the least work.
  std::string device = {};
  /// Renew the lease in the background while the session lives. Off: every call renews it, and
  /// renew() does.
  bool keep_alive = true;
  /// When the server has restarted, cannot be reached for a while, or has dropped the session: make the
  /// session again, on whichever server then answers, and each of its buffers when it is next needed. Calls
  /// then end as if nothing had happened, only later, where that takes at most ConnectOptions::max_outage and
  /// their own deadlines.
  ///
  /// For that the library keeps how each buffer was made. A buffer that an operation made is made by the same
  /// operation on the same inputs, so these are kept as long as any buffer that comes from them, whether or
  /// not their handles are. An uploaded one is uploaded again from the caller's memory, which therefore has
  /// to stay as it is until the Buffer and all that was made from it are gone, or the session
  /// (UploadOptions::keep can see to that); where it has changed, the call ends with DATA_LOSS rather than
  /// with other results. A chain of more than 1000 operations is not kept: download its end and upload it.
  bool recreate = false;
  CallOptions call = {};
};

/// Called after each chunk on a thread that transfers: the caller's, and others where there are several
/// connections, one at a time.
using TransferProgress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;
/// Called likewise: the bytes from `begin` on, before `end`, are in their place and, where they came over
/// streams, match their checksums. In any order; a transfer that has to begin again calls it again for the
/// same bytes.
using TransferArrival = std::function<void(std::int64_t begin, std::int64_t end)>;

struct UploadOptions {
  CallOptions call = {};
  TransferProgress progress = {};
  /// Connections to the server that carry the array together, at most 16; each takes one of the client's
  /// transfers (Capabilities.max_transfers). 0: one below 16 MiB, and up to four above, as far as they have
  /// helped before; none where the server shares memory with this client (ConnectOptions::shared_memory),
  /// into which as many threads copy.
  int connections = 0;
  std::optional<absl::Duration> ttl = std::nullopt;  ///< absent: as long as the session
  bool evictable = false;  ///< the server may drop it when the device runs out of memory
  /// What owns the array's memory, of a session with SessionOptions::recreate: held as long as the library
  /// may have to upload the array again. Absent: the caller keeps it.
  std::shared_ptr<const void> keep = nullptr;
};

struct DownloadOptions {
  CallOptions call = {};
  TransferProgress progress = {};
  TransferArrival arrived = {};  ///< to go on with what is there, before the rest is
  int connections = 0;           ///< as UploadOptions::connections
};

/// A lease on one device of one server instance, which owns buffers. Made by Client::create_session. Movable:
/// what was moved from may only be destroyed or assigned to. Its member functions may be called from several
/// threads at once; moving and destroying it may not run beside them. The destructor deletes the session, and
/// with it its buffers, waiting 2 s at most; a server that cannot be reached drops them when the lease ends.
class Session {
 public:
  Session(Session&&) noexcept = default;
  Session& operator=(Session&& other) noexcept;
  ~Session();

  // Each is another one once the session has been made again.
  std::string name() const;      ///< sessions/{uuid}
  std::string device() const;    ///< DeviceInfo::name
  std::string instance() const;  ///< of the server: new at every start of it
  std::string endpoint() const;  ///< where the server says that the session is; empty: where it was created

  /// Renews the lease. NOT_FOUND once the session is gone (error_reason says why).
  absl::Status renew(const CallOptions& options = {}) const;

  /// An array with room for these elements, uninitialised or 0, that uploads of this session's buffers take
  /// from where it lies: on the CPU backend the first upload of all of it copies nothing, and what is written
  /// to the array later is seen here alone; a GPU copies from it at its bus's rate, as often as it is
  /// uploaded. A download of as many bytes is copied once, by the server, to where it lies: on the CPU
  /// backend until it is uploaded. After one that failed it is an ordinary array of unspecified elements, as
  /// it is where the server shares no memory with this client. Takes a connection of the server's and, on a
  /// GPU, some milliseconds. INVALID_ARGUMENT and RESOURCE_EXHAUSTED as Array::allocate.
  absl::StatusOr<Array> allocate_shared(ElementType type, Shape shape) const;

  /// Copies an array to the server, in chunks that carry a crc32c each, straight from the array's
  /// memory. Begins again when the connection breaks (UNAVAILABLE), within the deadline. Returns
  /// when the library no longer reads the memory.
  absl::StatusOr<Buffer> upload(const ArrayView& array, const UploadOptions& options = {}) const;
  /// As upload, on a thread of its own: several at once overlap their checksums and round trips. The
  /// array's memory has to stay until the future is ready. The future's destructor waits for the end;
  /// `options.call.cancellation` brings it early. `options.progress` is not called on the caller's.
  std::future<absl::StatusOr<Buffer>> upload_async(const ArrayView& array,
                                                   const UploadOptions& options = {}) const;

  /// Copies a buffer into `destination`, which has to have its size, verifying every chunk's crc32c
  /// (DATA_LOSS where one is wrong). Goes on where it stopped when the connection breaks.
  absl::Status download(const Buffer& buffer, std::span<std::byte> destination,
                        const DownloadOptions& options = {}) const;
  absl::StatusOr<Array> download(const Buffer& buffer, const DownloadOptions& options = {}) const;
  /// As download, on a thread of its own; the buffer (and `destination`) have to stay until the future is
  /// ready. The future's destructor waits for the end; `options.call.cancellation` brings it early.
  std::future<absl::Status> download_async(const Buffer& buffer, std::span<std::byte> destination,
                                           const DownloadOptions& options = {}) const;
  std::future<absl::StatusOr<Array>> download_async(const Buffer& buffer,
                                                    const DownloadOptions& options = {}) const;
  /// Elements in row-major order. INVALID_ARGUMENT where T is not the buffer's element type.
  template <class T>
  absl::StatusOr<std::vector<T>> download(const Buffer& buffer, const DownloadOptions& options = {}) const {
    absl::StatusOr<Array> array = download(buffer, options);
    if (!array.ok()) return array.status();
    absl::StatusOr<std::span<const T>> values = array->template values<T>();
    if (!values.ok()) return values.status();
    return std::vector<T>(values->begin(), values->end());
  }

  /// Runs an operation on this session's device and waits for it.
  absl::StatusOr<Result> run(const Operation& operation, const RunOptions& options = {}) const;
  /// As run, without waiting.
  std::future<absl::StatusOr<Result>> run_async(const Operation& operation,
                                                const RunOptions& options = {}) const;
  /// As run, without waiting; calls `done` once, on the library's thread: it must not block (so it
  /// makes no call that waits) and must not throw.
  void run_async(const Operation& operation, const RunOptions& options,
                 std::function<void(absl::StatusOr<Result>)> done) const;

 private:
  friend class Client;
  friend class SessionAccess;
  explicit Session(std::shared_ptr<SessionState> state);
  void close();

  std::shared_ptr<SessionState> state_;
};

}  // namespace cumulus

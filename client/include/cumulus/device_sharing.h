#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "cumulus/array.h"
#include "cumulus/operation.h"
#include "cumulus/session.h"

struct CUstream_st;  // cudaStream_t and CUstream are pointers to it

/// GPU memory that a Cumulus server on this machine shares with a program that uses the same GPU: results are
/// read by the program's own kernels, and what its kernels have written becomes the server's input, without a
/// way over the bus. A library of its own (Cumulus::device_sharing), beside the client's; it loads the driver
/// (libcuda.so.1) when it is first used.
///
///   absl::StatusOr<cumulus::DeviceArray> table = cumulus::import_buffer(*result->buffer("table"));
///   my_kernel<<<grid, block>>>(static_cast<const unsigned char*>(table->data()));
///
/// All functions use the CUDA context that is current on the calling thread: call cudaSetDevice() or
/// cudaFree(nullptr) before, or make one current with the driver. They may be called from several threads at
/// once. docs/device_sharing.md says what the server needs, and what both sides can do to each other.
namespace cumulus {

/// An array in an allocation of the GPU's memory that the server made for this program alone and both have
/// mapped. Movable. The server counts its bytes, a multiple of 2 MiB, against the session's quota and the
/// device's budget until the array's end, which waits for nothing: no work that uses the memory may be left
/// then. The array stays when its session or the client ends.
class DeviceArray {
 public:
  DeviceArray(DeviceArray&&) noexcept;
  DeviceArray& operator=(DeviceArray&&) noexcept;
  ~DeviceArray();

  ElementType type() const;
  const Shape& shape() const;       ///< elements, outermost extent first; dense and row-major
  std::int64_t size_bytes() const;  ///< of the elements

  /// In device memory of the context that was current, at a multiple of 2 MiB; null where there are no
  /// elements. The host cannot read it. Nothing is mapped for 2 MiB before and behind the array's allocation.
  const void* data() const;
  /// The same where kernels may write there, of allocate_device_array; else null, and a kernel that writes to
  /// data() ends with an error that its context does not survive.
  void* mutable_data() const;

 private:
  friend class DeviceArrayAccess;
  struct State;
  explicit DeviceArray(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

/// Maps a copy of a buffer, of its element type and shape, for kernels to read; the copy is made within the
/// GPU and is complete when this returns. It takes about a millisecond. A buffer that is lost with its server
/// is made again first, as by Session::download.
///
/// FAILED_PRECONDITION where the server shares no GPU memory with this program, or has no room for more, and
/// where this program has no CUDA context on the session's GPU: each with what would be right.
/// RESOURCE_EXHAUSTED where the session's quota has no room, NOT_FOUND where the buffer is gone, UNAVAILABLE
/// where the server is, INTERNAL where the driver fails.
absl::StatusOr<DeviceArray> import_buffer(const Buffer& buffer, const CallOptions& options = {});

/// An array of zeros on the session's GPU for kernels to write to, which upload_device_array makes buffers
/// of, as often as wanted. Errors as import_buffer's, and INVALID_ARGUMENT where the shape is impossible.
absl::StatusOr<DeviceArray> allocate_device_array(const Session& session, ElementType type, Shape shape);

/// Makes a buffer of what the array holds once all work that `stream` (null: the default stream) has been
/// given is done, by a copy within the GPU: the array may be written to again when this returns. Of `options`
/// call, ttl and evictable count. A buffer of a session that is made again (SessionOptions::recreate) cannot
/// be made again from it: NOT_FOUND then.
///
/// FAILED_PRECONDITION where the array lies on another GPU than the session, NOT_FOUND (REGION_NOT_FOUND)
/// where it is not this server's, INTERNAL where work of the stream has failed; else as Session::upload.
absl::StatusOr<Buffer> upload_device_array(const Session& session, const DeviceArray& array,
                                           CUstream_st* stream = nullptr, const UploadOptions& options = {});

}  // namespace cumulus

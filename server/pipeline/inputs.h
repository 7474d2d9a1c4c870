#pragma once

#include <absl/status/status.h>

#include <functional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "server/pipeline/operation.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// One input of a call: where it is, and what it is once that is known.
class CallInput {
 public:
  /// Checks the source's form and finds its data: a resident buffer of `session` (null: the call has
  /// none), or the request's own bytes, which must outlive this. An encoded image still has to be decoded.
  static absl::StatusOr<CallInput> resolve(const SourceField& source, const Session* session,
                                           const Principal& caller, Runtime& runtime);

  bool needs_decoding() const { return encoded_ != nullptr; }
  /// Blocking work, for a thread of its own, which the error of `wanted` ends; `device` is where the buffers
  /// are. The pixels stay in the runtime's budget of decoded images as long as this lives. Throws where there
  /// is no memory.
  absl::Status decode(Runtime& runtime, Device& device, const std::function<absl::Status()>& wanted);
  /// Of the image file that was decoded; 0: there was none.
  std::size_t encoded_bytes() const { return encoded_bytes_; }

  /// The input as an operation's `validate` sees it.
  InputArray describe() const;
  /// Bytes of device memory that an upload takes: none for what is on the device, or in memory that the
  /// device reads itself.
  std::size_t upload_bytes(Space space) const;
  std::size_t bytes() const { return shape_.bytes(); }
  /// The resident buffer; null for data on the host.
  const ResidentBuffer* resident() const { return buffer_.get(); }
  std::span<const std::byte> host_bytes() const { return host_; }

 private:
  absl::Status resolve_encoded(const SourceField& source, const Session* session, const Principal& caller,
                               Runtime& runtime);

  std::string_view field_;
  ArrayShape shape_;
  BufferHandle buffer_;
  std::span<const std::byte> host_;
  const v1::EncodedImage* encoded_ = nullptr;
  BufferHandle encoded_buffer_;  // that holds the file; null: it is in the request, or on the disk
  std::size_t encoded_bytes_ = 0;
  Reservation reservation_;  // of decoded_
  HostMemory decoded_;
};

}  // namespace cumulus::server

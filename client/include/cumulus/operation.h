#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cumulus/array.h"

namespace cumulus {

class Buffer;
struct BufferState;

/// Stops calls from another thread. Copies share one state: keep one, give one to CallOptions.
/// Thread-safe. A stopped call ends with CANCELLED; what the server had already done of it is released.
class Cancellation {
 public:
  Cancellation();
  void cancel() const;
  bool cancelled() const;

 private:
  friend class CancellationScope;
  struct State;
  std::shared_ptr<State> state_;
};

/// What every call takes.
struct CallOptions {
  /// From now to the end of the call, its repetitions included. Absent: ConnectOptions::call_timeout,
  /// and for a transfer a second more for each 16 MiB. The server caps it
  /// (Capabilities::max_deadline).
  std::optional<absl::Duration> timeout = std::nullopt;
  std::optional<Cancellation> cancellation = std::nullopt;
  /// Free text of at most 128 bytes that the server repeats in its log.
  std::string request_id = {};
};

/// An image file (OpenEXR, Radiance HDR, PNG, TIFF, JPEG), to be decoded by the server: one of `file`,
/// `buffer` and `path` says where it is.
struct EncodedImage {
  /// Its bytes, which travel with the call: at most Capabilities::max_encoded_bytes. Those of a larger one
  /// are uploaded first, as a uint8 array.
  std::span<const std::byte> file = {};
  int subimage = 0;
  /// Channels to keep, by name, in this order; empty keeps all.
  std::vector<std::string> channels = {};
  /// Its bytes as they have been uploaded to the session. The buffer has to live until the call has ended.
  const Buffer* buffer = nullptr;
  /// Its path on the server, below the folder that that reads files from (Capabilities::file_root).
  std::string path = {};
};

/// An array that a step of a pipeline makes (pipeline.h).
struct StepOutput {
  int step = 0;
  std::string array;
};

/// Where an operation's input comes from. Made implicitly from each of the four.
class Source {
 public:
  /// Resident on the server: no transfer. The buffer has to live until the call has ended.
  Source(const Buffer& buffer);  // NOLINT(google-explicit-constructor)
  /// Sent within the call: for arrays of at most Capabilities::max_inline_bytes. Larger ones are
  /// uploaded first (Session::upload).
  Source(ArrayView array) : value_(std::move(array)) {}     // NOLINT(google-explicit-constructor)
  Source(EncodedImage image) : value_(std::move(image)) {}  // NOLINT(google-explicit-constructor)
  Source(const Array& array) : Source(array.view()) {}      // NOLINT(google-explicit-constructor)
  /// Of an earlier step, where the operation is one of a pipeline.
  Source(StepOutput output) : value_(std::move(output)) {}  // NOLINT(google-explicit-constructor)

 private:
  friend class OperationInputs;
  std::variant<std::shared_ptr<BufferState>, ArrayView, EncodedImage, StepOutput> value_;
};

/// One operation with its inputs and parameters: what to run, not yet where. The functions of
/// sampling_table.h, summed_area_table.h, ... make it; Session::run and Client::run run it, as often as
/// wanted. Inline and encoded inputs have been copied into it. Cheap to copy, immutable.
///
/// The arrays that it answers lie in the device's memory, as new buffers of the session, or came in the
/// response (Placement). Every operation may fail with
/// - INVALID_ARGUMENT: an input or an option is wrong; field_violations names it by its path in the request,
///   before anything has run
/// - FAILED_PRECONDITION: the input has no answer; error_reason and error_metadata say what stands in the
///   way, as the operation's documentation has it
/// - RESOURCE_EXHAUSTED: the device's memory, the session's quota or a limit of the server; quota_violations
/// - NOT_FOUND: a buffer or the session is gone; error_reason says why
/// - UNAVAILABLE: no server, or one that is stopping or has a full queue for as long as the deadline allows
/// - DEADLINE_EXCEEDED, CANCELLED
/// - INTERNAL: the device failed; the reason is DEVICE_FAULT
class Operation {
 private:
  friend class OperationAccess;
  struct Request;
  explicit Operation(std::shared_ptr<const Request> request) : request_(std::move(request)) {}
  std::shared_ptr<const Request> request_;
};

/// What a filter does where a pixel is NaN or infinite, which would spoil the pixels around it, or all of its
/// channel.
enum class NonFinitePixels {
  /// FAILED_PRECONDITION, reason NON_FINITE_PIXEL, with `row`, `column` and `channel` (of a batch `image`) of
  /// the first
  kRefuse,
  kClamp,  ///< NaN counts as 0, an infinity as the image's largest finite magnitude, at least 65504
  kKeep,   ///< they are taken as they are, and spread
};

enum class Placement {
  kDefault,  ///< of a session: new buffers on its device; without a session: inline
  kInline,   ///< in the response: at most Capabilities::max_inline_bytes in all
};

enum class Priority {
  kInteractive,
  kBatch,  ///< runs when no interactive request waits
};

/// How to run an operation.
struct RunOptions {
  CallOptions call = {};
  Placement output = Placement::kDefault;
  /// Lifetime of the new buffers; absent: as long as their session. At most Capabilities::max_ttl.
  std::optional<absl::Duration> output_ttl = std::nullopt;
  /// The server may drop the new buffers when the device runs out of memory.
  bool evictable = false;
  /// Checks everything, runs nothing: the result has no arrays.
  bool validate_only = false;
  Priority priority = Priority::kInteractive;
};

/// Where a call's time went, on the server's clock.
struct Timings {
  absl::Duration queue;                          // waiting for the device
  absl::Duration input;                          // decoding and uploading sources
  absl::Duration compute;                        // on the device
  absl::Duration output;                         // placing the outputs
  std::string device;                            // that ran it: "cpu", "cuda0", ...
  absl::Duration decode = absl::ZeroDuration();  // of input: decoding images
  std::int64_t encoded_bytes = 0;                // of their files
};

/// What an operation answers: arrays by name, each a buffer on the server or an array that came with
/// the response. Movable.
class Result {
 public:
  Result();
  ~Result();
  Result(Result&&) noexcept;
  Result& operator=(Result&&) noexcept;

  const Timings& timings() const { return timings_; }

  /// In the order of the operation's documentation.
  std::vector<std::string> names() const;

  /// The resident array, or null where there is none of this name or it came inline.
  const Buffer* buffer(std::string_view name) const;

  /// Moves a resident array out, to outlive the result. NOT_FOUND without one of this name,
  /// FAILED_PRECONDITION where it came inline.
  absl::StatusOr<Buffer> take_buffer(std::string_view name);

  /// The array in host memory, wherever it is: downloads a resident one, moves an inline one out.
  /// NOT_FOUND without one of this name.
  absl::StatusOr<Array> fetch(std::string_view name, const CallOptions& options = {});

 private:
  friend class ResultDecoder;
  struct Entry;
  absl::StatusOr<Entry*> find(std::string_view name);

  Timings timings_;
  std::vector<Entry> entries_;
};

}  // namespace cumulus

#include "library/shared_memory/array_download.h"

#include <memory>
#include <utility>

#include "cumulus/v1/shared_memory.pb.h"
#include "library/shared_memory/arrays.h"
#include "library/shared_memory/region_call.h"
#include "library/transfer_retry.h"
#include "proto/steady_time.h"

namespace cumulus {
namespace {

/// Lets the server write, and says what has come. CANCELLED where the call ends before the array's end does.
absl::Status receive(RegionCall& call, std::size_t bytes, const DownloadOptions& options) {
  const absl::Status over_before = absl::CancelledError("the call ended before the transfer");
  if (!call.wait_until_begun()) return over_before;
  if (!call.gave() && !call.send(SharedMemoryMessage::kFree, 0, 0, 0)) return over_before;
  std::size_t came = 0;
  while (came < bytes) {
    const std::optional<SharedMemoryMessage> message = call.next();
    if (!message.has_value()) return over_before;
    if (message->kind != SharedMemoryMessage::kFilled || message->offset != came || message->bytes == 0 ||
        message->bytes > bytes - came) {
      call.region().hang_up();
      return absl::DataLossError("download: the server names bytes that are not next");
    }
    const std::size_t end = came + message->bytes;
    if (options.arrived) options.arrived(static_cast<std::int64_t>(came), static_cast<std::int64_t>(end));
    if (options.progress) options.progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(bytes));
    came = end;
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<absl::Status> read_into_shared_array(Connection& connection, const CallContext& context,
                                                   const std::string& name, std::span<std::byte> destination,
                                                   const DownloadOptions& options) {
  if (destination.size() < kMinSharedBytes) return std::nullopt;
  SharedArrays& arrays = *connection.shared_memory().arrays();
  const SharedArrays::Hold region = arrays.find(destination);
  if (region == nullptr) return std::nullopt;
  v1::ReadSharedRequest request;
  request.set_name(name);
  CallOptions terms = options.call;
  terms.timeout = connection.deadline(options.call, transfer_allowance(destination.size())) - steady_now();
  const auto call = std::make_shared<RegionCall>(connection, *region);
  call->expect_copy(destination.size());
  call->start(std::move(request), terms, context);
  const absl::Status received = receive(*call, destination.size(), options);
  const absl::Status status = call->wait().status();
  if (received.ok() && status.ok()) return absl::OkStatus();
  // The server may still be writing, where the caller is to have the array again.
  if (status.ok() || !call->leaves_nothing(status)) arrays.part_from_server(destination.data());
  if (absl::IsDataLoss(received)) return received;
  if (status.ok()) return absl::DataLossError("download: the server sent fewer bytes than there are");
  const bool given_up = options.call.cancellation.has_value() && options.call.cancellation->cancelled();
  if (call->goes_another_way(status) && !given_up) return std::nullopt;
  return status;
}

}  // namespace cumulus

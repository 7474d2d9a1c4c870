#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "cumulus/operation.h"
#include "library/session_state.h"

namespace cumulus {

struct Production;

/// A result from the wire. Its buffers lie on the server of `lease`, in `session` (null: a call without one),
/// and are made again by `production` (null: not at all).
absl::StatusOr<Result> decode_result(grpc::ByteBuffer& bytes, const std::shared_ptr<SessionState>& session,
                                     const Lease& lease, std::shared_ptr<Production> production);

}  // namespace cumulus

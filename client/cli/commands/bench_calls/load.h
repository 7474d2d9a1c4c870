#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "library/connection.h"

namespace cumulus::cli {

/// The small call that is repeated: FilterBox of an inline image of 16 x 16 floats.
struct SmallCall {
  std::string method;
  grpc::ByteBuffer request;
};
SmallCall small_call();

/// What a number of callers saw, each of which calls again as soon as it has its answer.
struct LoadResult {
  std::vector<double> seconds;  // of each call
  absl::Duration elapsed;

  void add(const LoadResult& more);
  double calls_per_second() const;
  /// Sorts the times.
  double quantile(double share);
};

/// Lets `callers` call over one connection for `duration`; the first error ends it.
absl::StatusOr<LoadResult> run_load(Connection& connection, const SmallCall& call, int callers,
                                    absl::Duration duration, const CallOptions& options);

}  // namespace cumulus::cli

#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <vector>

#include "library/connection.h"

namespace cumulus::cli {

/// A small call that is repeated.
struct SmallCall {
  std::string method;
  grpc::ByteBuffer request;
};
/// FilterBox of an inline image of 16 x 16 floats.
SmallCall small_call();
/// BuildSamplingTable of an inline map of 64 x 64 floats, of the plane.
SmallCall table_call();

struct LoadShape {
  int callers = 1;
  absl::Duration duration;
  /// From one call's begin to the next's, for a caller that is alone; 0: it calls again as soon as it has its
  /// answer, as several do.
  absl::Duration pace;
};

/// What a number of callers saw.
struct LoadResult {
  std::vector<double> seconds;  // of each call
  absl::Duration elapsed;

  void add(const LoadResult& more);
  double calls_per_second() const;
  /// Sorts the times.
  double quantile(double share);
};

/// Lets the callers call over one connection; the first error ends it.
absl::StatusOr<LoadResult> run_load(Connection& connection, const SmallCall& call, const LoadShape& shape,
                                    const CallOptions& options);

}  // namespace cumulus::cli

#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include "cli/job/job.h"
#include "cumulus/session.h"

namespace cumulus::cli {

/// What each subject took, from the call to the answer, and the server's kernels of that.
struct ChainTimes {
  struct Subject {
    absl::Duration whole;
    absl::Duration kernels;
  };
  Subject one_call;    // five small operations
  Subject five_calls;  // the same, one after the other
  Subject one_filter;  // a box filter, which shows what a call costs besides its kernels
};

/// The medians of `rounds`, in which the three take turns. Five operations on a map of 128 x 256 float32: it
/// is blurred, a sampling table of that is built and 1024 samples are drawn, the blurred map is box-filtered
/// and summed. Samples and sums stay on the server, and have to be the same bytes either way: INTERNAL
/// otherwise.
absl::StatusOr<ChainTimes> measure_chain(Job& job, const Session& session, int rounds);

}  // namespace cumulus::cli

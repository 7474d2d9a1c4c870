#include "server/runtime/drain.h"

#include "server/pipeline/errors.h"

namespace cumulus::server {

absl::Status draining() {
  constexpr absl::Duration kRetryAfter = absl::Milliseconds(200);
  return unavailable("DRAINING",
                     "the server is shutting down, and begins nothing new; connect to another one, or to the "
                     "one that takes its place",
                     kRetryAfter);
}

}  // namespace cumulus::server

#pragma once

#include <absl/status/status.h>

#include <string_view>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

/// What came is no message of the type that the RPC takes. `method` is its path, "/cumulus.v1.Server/...".
inline absl::Status malformed_message(std::string_view method) {
  return bad_request(
      "MALFORMED_MESSAGE",
      concat("the message is none that ", method,
             " takes; make it with the version of the .proto files that this server has, or an "
             "older one"));
}

}  // namespace cumulus::server

#pragma once

#include <cmath>
#include <memory>

#include "cumulus/channel.h"
#include "library/c/handles.h"
#include "library/connection.h"

// NOLINTNEXTLINE(readability-identifier-naming): C's name
struct cumulus_channel {
  std::shared_ptr<cumulus::Connection> connection;
};

namespace cumulus::c {

/// Of a structure of options that begins with its size.
template <class Options>
Outcome check_size(const Options& options, const char* name, const char* begin_with) {
  if (options.size == sizeof(Options)) return absl::OkStatus();
  return refuse(absl::StrCat(name, ".size"),
                absl::StrCat("is ", options.size, ", and this library's structure has ", sizeof(Options),
                             " bytes; begin with ", begin_with, " of its header"));
}

/// 0 is a deadline that has passed, which the call itself says.
inline Outcome check_timeout(double seconds, const char* name) {
  if (std::isfinite(seconds) && seconds >= 0) return absl::OkStatus();
  return refuse(name, "has to be finite and at least 0");
}

inline CallContext context_of(const cumulus_session_name& session) {
  return {.session = text_of(session.name), .instance = text_of(session.instance)};
}

}  // namespace cumulus::c

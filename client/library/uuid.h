#pragma once

#include <string>

namespace cumulus {

/// A random UUID (RFC 4122, version 4) in its usual form of 36 characters.
std::string make_uuid();

}  // namespace cumulus

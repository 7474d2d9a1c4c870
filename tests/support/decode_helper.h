#pragma once

#include <memory>

#include "server/runtime/decode/helper.h"

namespace cumulus::testing {

/// Of all servers in this program. Forked before main, and so before any thread.
inline const std::shared_ptr<server::DecodeHelper> kDecodeHelper = server::DecodeHelper::start().value();

inline std::shared_ptr<server::DecodeHelper> decode_helper() { return kDecodeHelper; }

}  // namespace cumulus::testing

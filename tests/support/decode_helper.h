#pragma once

#include <memory>

#include "server/runtime/decode/helper.h"

namespace cumulus::testing {

/// Of all servers in this program, which is executed anew as the helper and becomes it here, before main.
inline const std::shared_ptr<server::DecodeHelper> kDecodeHelper = [] {
  server::become_decode_helper_if_started_as_one();
  return std::make_shared<server::DecodeHelper>();
}();

inline std::shared_ptr<server::DecodeHelper> decode_helper() { return kDecodeHelper; }

}  // namespace cumulus::testing

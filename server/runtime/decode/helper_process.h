#pragma once

#include "server/runtime/decode/channel.h"

namespace cumulus::server {

/// What DecodeHelper's process does until `daemon` is gone: its orders, one after another.
[[noreturn]] void run_decode_helper(Channel daemon);

}  // namespace cumulus::server

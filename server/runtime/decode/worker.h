#pragma once

#include "images/image_library.h"
#include "server/runtime/decode/channel.h"

namespace cumulus::server {

/// Decodes the one image that `daemon` sends, and ends the process. Reads what it is sent with `library` and
/// nothing else: confine_process() may have come before.
[[noreturn]] void run_decode_worker(const images::ImageLibrary& library, const Channel& daemon);

}  // namespace cumulus::server

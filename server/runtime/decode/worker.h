#pragma once

#include "images/image_library.h"
#include "server/runtime/decode/channel.h"

namespace cumulus::server {

/// How a worker ends that cannot be bounded and confined, and so reads nothing.
inline constexpr int kCannotBeConfined = 3;

/// Decodes the one image that `daemon` sends, and ends the process. Reads what it is sent with `library` and
/// nothing else: confine_process() may have come before.
[[noreturn]] void run_decode_worker(const images::ImageLibrary& library, const Channel& daemon);

}  // namespace cumulus::server

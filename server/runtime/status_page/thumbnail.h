#pragma once

#include <string>

#include "server/runtime/session_store.h"

namespace cumulus::server {

/// Whether an array looks like an image: [height, width] or [height, width, channels] with 1 to 4 channels,
/// of 8- or 16-bit integers or of floats.
bool is_picture(const ArrayShape& shape);

/// A small BMP file of a picture: every nth pixel, floats scaled by their bright ones. Empty where the device
/// does not give the pixels within a second.
std::string thumbnail(Device& device, const BufferHandle& buffer);

}  // namespace cumulus::server

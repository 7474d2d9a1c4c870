#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "images/image_library.h"

namespace cumulus::images {

/// The format of our own module that a file which begins so is in ("openexr", "hdr", "png", "jpeg"), or
/// "tiff"; empty for all others.
std::string format_by_first_bytes(std::string_view bytes);

/// The module that reads this format, and the one that writes files of this name. The first call loads a
/// module and nothing unloads it. From any thread. UNIMPLEMENTED where it cannot be loaded, and in a build
/// without images; the message goes on a sentence about this program ("it cannot load ...; install ...").
/// What failed is tried again by the next call.
absl::StatusOr<const ImageLibrary*> library_that_reads(const std::string& format);
absl::StatusOr<const ImageLibrary*> library_that_writes(const std::string& path);

/// Whether the modules are in their places. Loads nothing.
bool image_library_is_installed();

}  // namespace cumulus::images

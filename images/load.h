#pragma once

#include <absl/status/statusor.h>

#include "images/image_library.h"

namespace cumulus::images {

/// The image module, which the first call loads and nothing unloads. From any thread. UNIMPLEMENTED where it
/// cannot be loaded, and in a build without OpenImageIO; the message goes on a sentence about this program
/// ("it cannot load ...; install ..."). What failed is tried again by the next call.
absl::StatusOr<const ImageLibrary*> load_image_library();

/// Whether the module is in its place. Loads nothing.
bool image_library_is_installed();

}  // namespace cumulus::images

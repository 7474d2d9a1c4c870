#include "images/load.h"

namespace cumulus::images {

absl::StatusOr<const ImageLibrary*> load_image_library() {
  return absl::UnimplementedError("it was built without OpenImageIO; build it with CUMULUS_OPENIMAGEIO=ON");
}

bool image_library_is_installed() { return false; }

}  // namespace cumulus::images

#include "images/load.h"

namespace cumulus::images {
namespace {

absl::Status unavailable() {
  return absl::UnimplementedError("it was built without images; build it with CUMULUS_OPENIMAGEIO=ON");
}

}  // namespace

absl::StatusOr<const ImageLibrary*> library_that_reads(const std::string& /*format*/) {
  return unavailable();
}

absl::StatusOr<const ImageLibrary*> library_that_writes(const std::string& /*path*/) { return unavailable(); }

bool image_library_is_installed() { return false; }

}  // namespace cumulus::images

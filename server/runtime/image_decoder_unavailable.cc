#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/image_decoder.h"

namespace cumulus::server {

std::span<const std::string_view> image_formats() { return {}; }

absl::StatusOr<DecodedImage> decode_image(const v1::EncodedImage& /*image*/, const ImageLimits& /*limits*/,
                                          std::string_view field, const AdmitBytes& /*admit*/) {
  return unsupported("IMAGES_UNSUPPORTED",
                     concat(field,
                            ": this server was built without OpenImageIO and decodes no images; decode the "
                            "image in the client and send an array"));
}

}  // namespace cumulus::server

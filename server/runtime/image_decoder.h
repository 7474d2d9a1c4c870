#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "cumulus/v1/array.pb.h"
#include "kernels/core/memory.h"
#include "server/runtime/array_spec.h"
#include "server/runtime/decode/helper.h"

namespace cumulus::server {

/// What an encoded image may become.
struct ImageLimits {
  std::size_t max_pixels = 0;
  std::size_t max_channels = 0;
  std::size_t max_bytes = 0;      // of the decoded array
  std::size_t working_bytes = 0;  // that reading may take beyond what was admitted
  absl::Duration processor_time;  // of the decoder
};

struct DecodedImage {
  ArrayShape shape;   // [height, width, channels]; UINT8 where the file holds 8-bit samples, else FLOAT32
  HostMemory pixels;  // exactly the array
};

/// The formats that decode_image takes, by name; none where the image module (images/load.h) is missing.
std::span<const std::string_view> image_formats();

/// How a caller takes part in the decoding of its image.
struct DecodeControl {
  /// Asked for the bytes that decoding will hold at most, before it holds them; its error ends the decoding.
  std::function<absl::Status(std::size_t)> admit = {};
  /// Asked some fifty times a second; its error ends the decoding, wherever it is.
  std::function<absl::Status()> wanted = {};
};

/// An image file's bytes, and the field of v1::EncodedImage that said where they are.
struct EncodedFile {
  std::string_view bytes;
  std::string_view source = "data";
};

/// Decodes a file of one of those formats, told apart by its first bytes, in a process of its own (see
/// docs/decisions/0014-decoding-in-processes.md); of an EXR the data window. What the header claims is held
/// against `limits`, and then `admit` is asked, before any pixel is read. Blocks until that process is gone.
/// Errors name the field below `field`, the path of `image` ("weights.encoded"): INVALID_ARGUMENT for what is
/// wrong with the image or the request, a file that crashes its decoder included, RESOURCE_EXHAUSTED for what
/// is over a limit, UNIMPLEMENTED where the image module, which the first image loads, cannot be loaded.
absl::StatusOr<DecodedImage> decode_image(DecodeHelper& helper, const v1::EncodedImage& image,
                                          const EncodedFile& file, const ImageLimits& limits,
                                          std::string_view field, const DecodeControl& control = {});

}  // namespace cumulus::server

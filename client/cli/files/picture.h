#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "cli/files/image.h"
#include "cumulus/array.h"

namespace cumulus::cli {

/// A picture of any kind that the commands take, as [height, width, channels] of uint8 or float32 (with kKeep
/// also float16): an image file (read_image), or a .npy file of such an array, with or without its channels.
absl::StatusOr<Array> read_picture(const std::string& path, HalfFloats halves = HalfFloats::kWiden);

/// The type of the samples of `picture`, read from `path`, where they were integers that a file of integers
/// can take back: kUint8 or kUint16.
std::optional<ElementType> integer_samples(const std::string& path, const Array& picture);

}  // namespace cumulus::cli

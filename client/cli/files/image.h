#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// What becomes of half floats.
enum class HalfFloats {
  kWiden,  ///< float32, as all that are not 8-bit
  kKeep,   ///< float16: half of the bytes, for what takes them
};

/// Reads an image file's first picture as [height, width, channels]: uint8 where the file holds 8-bit
/// samples, else float32, or float16. 1 to 4 channels; of a file with more, those named R, G and B.
absl::StatusOr<Array> read_image(const std::string& path, HalfFloats halves = HalfFloats::kWiden);

/// Likewise in the file's own samples, where they are integers of 8 to 32 bits or floats; else float32.
absl::StatusOr<Array> read_image_samples(const std::string& path);

/// Reads an image file's first picture bit for bit: [height, width, channels] of the file's own sample type,
/// all channels, colours not multiplied by alpha.
absl::StatusOr<Array> read_image_as_stored(const std::string& path);

/// What the colours of an image with an alpha channel are.
enum class Colours {
  kMultipliedByAlpha,  ///< as read_image gives them; formats that keep them otherwise get them divided
  kAsStored,           ///< as read_image_as_stored gives them: written as they are
};

/// Whether write_image knows a format for files of this name, and what to do where it does not.
absl::Status check_image_name(const std::string& path);

/// Whether files of this name keep every sample of this type as it is, and what names do: JPEG blurs them,
/// and many formats hold integers as shares of their largest, or floats as integers.
absl::Status check_keeps_samples(const std::string& path, ElementType type);

/// Writes [height, width, channels] or [height, width]. The file's extension chooses the format; elements
/// that the format lacks are converted (OpenEXR has no 64-bit numbers, and stores float64 as float32). Floats
/// of 0 to 1 can be stored as the integers `samples`.
absl::Status write_image(const std::string& path, const ArrayView& image,
                         Colours colours = Colours::kMultipliedByAlpha,
                         std::optional<ElementType> samples = std::nullopt);

/// Of an image file whose samples are integers, which read_image gives as uint8 or as floats of 0 to 1:
/// kUint8 or kUint16. Nothing for any other file.
std::optional<ElementType> integer_samples(const std::string& path);

/// Whether files of this name hold floating-point numbers.
bool holds_floats(const std::string& path);

}  // namespace cumulus::cli

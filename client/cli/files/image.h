#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "cumulus/array.h"
#include "images/image_library.h"

namespace cumulus::cli {

/// In which elements an image file's samples are read. 8-bit ones are uint8 unless they are said to be
/// otherwise; colours are multiplied by alpha but for kSamples and kAsStored.
enum class ReadAs {
  kFloats,    ///< float32 where the file is not 8-bit, or its colours have to be multiplied by alpha
  kBytes,     ///< uint8 wherever the file is 8-bit; else as kFloats
  kHalves,    ///< float16, too, where the file has it: half of the bytes, for what takes them
  kSamples,   ///< the file's own, where they are integers of 8 to 32 bits or floats; else float32
  kAsStored,  ///< bit for bit the file's own
};

/// Which picture and which channels of an image file are taken.
struct PictureChoice {
  std::string subimage = {};  // its number, from 0 on, or the name of an EXR part; empty: the first
  std::vector<std::string> channels = {};  // names of channels or of layers, in this order; empty: all
};

struct ReadOptions {
  ReadAs as = ReadAs::kFloats;
  PictureChoice choice = {};
  bool all_channels =
      false;  // else 4 at most; of more, unless the choice says otherwise, those named R, G and B
};

/// An image file's picture, upright, and what its file says beside the pixels.
struct ImagePicture {
  Array pixels;  // [height, width, channels]
  images::Metadata metadata;
  std::vector<std::string> channel_names;
  std::vector<images::Samples> channel_samples;  // of the file, each of a channel
  bool straight_alpha = false;                   // the file's colours are not multiplied by alpha
  std::size_t subimage = 0;
  std::vector<std::string> left_out;  // channels of the picture
};

absl::StatusOr<ImagePicture> read_image_picture(const std::string& path, const ReadOptions& options);

/// The pixels of a file's first picture: those of kBytes, with 1 to 4 channels.
absl::StatusOr<Array> read_image(const std::string& path);
/// All channels, bit for bit.
absl::StatusOr<Array> read_image_as_stored(const std::string& path);

/// The kind of integers that an image file's samples are, which are read as uint8 or as floats of 0 to 1:
/// kUint8 or kUint16. Nothing for any other.
std::optional<ElementType> integer_samples(const ImagePicture& picture);
std::optional<ElementType> integer_samples(const std::string& path);

/// What the colours of an image with an alpha channel are.
enum class Colours {
  kMultipliedByAlpha,  ///< formats that keep them otherwise get them divided
  kAsStored,           ///< they are written as they are
};

/// How an image file is to be written.
struct WriteOptions {
  Colours colours = Colours::kMultipliedByAlpha;
  std::optional<ElementType> samples =
      {};                              // that floats of 0 to 1, or others, are stored as; absent: as they are
  std::string compression = {};        // by its name, "dwaa:45" or "jpeg:90" with a level; empty: as it was
  const ImagePicture* from = nullptr;  // of whose metadata the file keeps what its format has a place for
};

/// Whether write_image knows a format for files of this name, and what to do where it does not.
absl::Status check_image_name(const std::string& path);

/// Whether files of this name keep every sample of this type as it is, and what names do: JPEG blurs them,
/// and many formats hold integers as shares of their largest, or floats as integers.
absl::Status check_keeps_samples(const std::string& path, ElementType type);

/// Writes [height, width, channels] or [height, width]. The file's extension chooses the format; elements
/// that the format lacks are converted (OpenEXR has no 64-bit numbers, and stores float64 as float32).
absl::Status write_image(const std::string& path, const ArrayView& image, const WriteOptions& options = {});

/// What `from` has and a file of this name would not keep, by name: attributes, windows, other pictures. With
/// an empty path, what no file of bare numbers keeps.
std::vector<std::string> not_kept(const std::string& path, const ImagePicture& from);

/// Whether files of this name hold floating-point numbers, and integers.
bool holds_floats(const std::string& path);
bool holds_integers(const std::string& path, ElementType type);

/// `path`, or where it is "-" the name under which standard output takes a file of the format that `from` was
/// read from ("-.exr"); of no image a .npy file.
std::string named_like(const std::string& path, const ImagePicture* from);

}  // namespace cumulus::cli

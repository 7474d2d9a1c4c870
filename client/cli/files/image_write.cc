#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/files/extension.h"
#include "cli/files/image.h"
#include "cli/files/output.h"
#include "cli/files/samples.h"
#include "images/load.h"

namespace cumulus::cli {
namespace {

absl::Status cannot_write_image(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write the image ", path, ": ", why));
}

absl::StatusOr<const images::ImageLibrary*> library_for(const std::string& path) {
  auto library = images::library_that_writes(path);
  if (library.ok()) return library;
  return absl::Status(library.status().code(), absl::StrCat("this cumulus cannot open ", path, ": ",
                                                            std::string(library.status().message())));
}

/// Which formats hold what, by the extensions of their names.
const std::vector<std::string>& extensions_for(ElementType type) {
  static const std::map<ElementType, std::vector<std::string>> kExtensions = {
      {ElementType::kUint8, {".png", ".tif", ".tiff", ".bmp", ".tga", ".ppm", ".pgm"}},
      {ElementType::kUint16, {".png", ".tif", ".tiff", ".ppm", ".pgm"}},
      {ElementType::kUint32, {".exr", ".tif", ".tiff"}},
      {ElementType::kFloat16, {".exr", ".tif", ".tiff"}},  // TIFF files get them as float32
      {ElementType::kFloat32, {".exr", ".tif", ".tiff"}},
      {ElementType::kInt32, {".tif", ".tiff"}},
      {ElementType::kFloat64, {".tif", ".tiff"}},
      {ElementType::kUint64, {}},
      {ElementType::kInt64, {}}};
  return kExtensions.at(type);
}

bool is_among(const std::vector<std::string>& extensions, const std::string& path) {
  return std::find(extensions.begin(), extensions.end(), extension_of(path)) != extensions.end();
}

bool is_jpeg(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".jpg" || extension == ".jpeg";
}

/// Of each channel, what a file of this name stores it as.
std::vector<images::Samples> stored_samples(const std::string& path, const ArrayView& image,
                                            const WriteOptions& options) {
  if (options.samples.has_value()) return {samples_of(*options.samples)};
  const std::size_t channels = image.shape().size() > 2 ? static_cast<std::size_t>(image.shape()[2]) : 1;
  const bool exr = extension_of(path) == ".exr";
  if (!exr || options.from == nullptr || options.from->channel_samples.size() != channels)
    return {samples_of(image.type())};
  std::vector<images::Samples> stored;
  for (const images::Samples own : options.from->channel_samples) {
    const bool half = own == images::Samples::kFloat16;  // half in, half out
    stored.push_back(half && image.type() != ElementType::kFloat64 ? own : samples_of(image.type()));
  }
  return stored;
}

/// What the file is to say beside the pixels.
images::Metadata metadata_for(const std::string& format, const WriteOptions& options) {
  images::Metadata metadata;
  if (options.from != nullptr) metadata = options.from->metadata;
  if (metadata.format != format) metadata.compression.clear();  // another format's word
  if (!options.compression.empty()) metadata.compression = options.compression;
  return metadata;
}

/// Attributes that each file of their format has, and those that say how and when the file was made.
bool is_matter_of_course(const images::Attribute& attribute) {
  static constexpr std::array<std::string_view, 21> kNames = {"lineOrder",
                                                              "pixelAspectRatio",
                                                              "screenWindowCenter",
                                                              "screenWindowWidth",
                                                              "PixelAspectRatio",
                                                              "planarconfig",
                                                              "ResolutionUnit",
                                                              "XResolution",
                                                              "YResolution",
                                                              "sRGB intent",
                                                              "gamma",
                                                              "resolution",
                                                              "tiles",
                                                              "nativeFormat",
                                                              "name",
                                                              "Software",
                                                              "capDate",
                                                              "DateTime",
                                                              "Exif:ImageHistory",
                                                              "dwaCompressionLevel",
                                                              "time"};
  const std::string& name = attribute.name;
  const bool upright = name == "Orientation" && attribute.value == std::string("\1\0\0\0", 4);
  return upright || std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         name.rfind("tiff:", 0) == 0 || name.rfind("oiio:", 0) == 0;
}

}  // namespace

absl::Status check_image_name(const std::string& path) {
  const auto library = library_for(path);
  if (!library.ok()) return library.status();
  if (!(*library)->format_of(path).empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_other(std::filesystem::status(path, error)))
    return cannot_write_image(
        path, "its name says no format; give -o -.exr or -.png, and lead standard output there");
  return cannot_write_image(path, "no image format has such a name; end it with .exr, .tif or .png");
}

absl::Status check_keeps_samples(const std::string& path, ElementType type) {
  std::vector<std::string> right = extensions_for(type);
  if (is_among(right, path)) return absl::OkStatus();
  right.emplace_back(".npy");
  return cannot_write_image(
      path, absl::StrCat("its format would change samples of ", std::string(element_name(type)),
                         "; end its name with ", absl::StrJoin(right, ", ")));
}

absl::Status write_image(const std::string& path, const ArrayView& image, const WriteOptions& options) {
  for (const std::int64_t extent : image.shape()) {
    if (extent >= 1 && extent <= std::numeric_limits<int>::max()) continue;
    return cannot_write_image(path, absl::StrCat("its shape is ", absl::StrJoin(image.shape(), " x "),
                                                 "; image files have extents of 1 to 2^31 - 1"));
  }
  if (absl::Status known = check_image_name(path); !known.ok()) return known;
  const auto library = library_for(path);
  if (!library.ok()) return library.status();
  const auto extent = [&](std::size_t axis) { return static_cast<int>(image.shape()[axis]); };
  const images::Metadata metadata = metadata_for((*library)->format_of(path), options);
  images::Picture picture{.width = extent(1),
                          .height = extent(0),
                          .channels = image.shape().size() > 2 ? extent(2) : 1,
                          .pixels = image.bytes().data(),
                          .samples = samples_of(image.type()),
                          .stored = stored_samples(path, image, options),
                          .colours = options.colours == Colours::kAsStored
                                         ? images::AlphaColours::kAsStored
                                         : images::AlphaColours::kMultiplied,
                          .channel_names = {},
                          .metadata = &metadata};
  if (options.from != nullptr && static_cast<int>(options.from->channel_names.size()) == picture.channels)
    picture.channel_names = options.from->channel_names;
  OutputFile file(path);
  file.hold();
  std::int64_t written_to = 0;
  bool failed = false;
  const std::string problem =
      (*library)->write(path, picture, [&](std::int64_t position, std::span<const std::byte> bytes) {
        const bool written = (position == written_to || file.seek(position)) && file.write(bytes);
        failed = failed || !written;
        written_to = position + static_cast<std::int64_t>(bytes.size());
        return written;
      });
  if (!problem.empty() && !failed) {
    return cannot_write_image(
        path, absl::StrCat(problem,
                           "; .exr and .tif take any number of channels, of floats or of unsigned integers"));
  }
  return file.commit();  // which tells why writing failed
}

std::vector<std::string> not_kept(const std::string& path, const ImagePicture& from) {
  const images::Metadata& metadata = from.metadata;
  const auto library = path.empty() ? absl::NotFoundError("no image file") : library_for(path);
  const std::string format = library.ok() ? (*library)->format_of(path) : "";
  std::vector<std::string> lost;
  if (format != metadata.format) {
    for (const images::Attribute& attribute : metadata.attributes) {
      if (!is_matter_of_course(attribute)) lost.push_back(attribute.name);
    }
  }
  const bool windows = metadata.data != metadata.display || metadata.data.x != 0 || metadata.data.y != 0;
  if (windows && format != "openexr") lost.emplace_back("data window and display window");
  if (metadata.chromaticities.has_value() && format != "openexr" && format != "hdr" && format != "png" &&
      format != metadata.format)
    lost.emplace_back("chromaticities");
  if (metadata.has_levels) lost.emplace_back("smaller levels of the picture");
  for (std::size_t part = 0; part < metadata.parts.size(); ++part) {
    if (part == from.subimage) continue;
    const std::string& name = metadata.parts[part];
    lost.push_back(name.empty() ? absl::StrCat("picture ", part)
                                : absl::StrCat("picture ", part, " (", name, ")"));
  }
  for (const std::string& channel : from.left_out) lost.push_back("channel " + channel);
  return lost;
}

bool holds_floats(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".exr" || extension == ".hdr" || extension == ".tif" || extension == ".tiff";
}

bool holds_integers(const std::string& path, ElementType type) {
  return is_among(extensions_for(type), path) || (is_jpeg(path) && type == ElementType::kUint8);
}

std::string named_like(const std::string& path, const ImagePicture* from) {
  if (path != "-") return path;
  static const std::map<std::string, std::string> kExtensions = {
      {"openexr", ".exr"}, {"jpeg", ".jpg"}, {"tiff", ".tif"}, {"hdr", ".hdr"}, {"png", ".png"}};
  const auto found = from == nullptr ? kExtensions.end() : kExtensions.find(from->metadata.format);
  if (from == nullptr) return "-.npy";
  return found == kExtensions.end() ? "-.exr" : "-" + found->second;
}

}  // namespace cumulus::cli

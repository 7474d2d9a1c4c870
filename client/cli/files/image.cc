#include "cli/files/image.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/files/extension.h"
#include "cli/files/output.h"
#include "images/load.h"

namespace cumulus::cli {
namespace {

constexpr int kMaxChannels = 4;

absl::Status cannot_read(const std::string& path, const std::string& why, const std::string& what_to_do) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, " as an image: ", why, "; ", what_to_do));
}

absl::Status no_image(const std::string& path, const std::string& why) {
  return cannot_read(path, why, "give an OpenEXR, HDR, PNG, TIFF or JPEG file");
}

/// Of a file that begins as an image.
absl::Status damaged(const std::string& path, const std::string& why) {
  return cannot_read(path, why, "it is damaged or not complete: copy or render it anew");
}

absl::Status cannot_write_image(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write the image ", path, ": ", why));
}

absl::StatusOr<const images::ImageLibrary*> library_for(const std::string& path) {
  auto library = images::load_image_library();
  if (library.ok()) return library;
  return absl::Status(library.status().code(), absl::StrCat("this cumulus cannot open ", path, ": ",
                                                            std::string(library.status().message())));
}

/// An image file whose first picture is to be read.
struct OpenPicture {
  const images::ImageLibrary* library;
  images::ImageFile file;
  images::Header header;

  /// Reads all its channels; returns what went wrong, or nothing.
  std::string read(images::Samples samples, void* pixels) const {
    return library->read(*file, 0, header.channels, samples, pixels);
  }
};

/// Where in the file each channel to keep is.
absl::StatusOr<std::vector<int>> choose_channels(const images::Header& header) {
  std::vector<int> channels;
  if (header.channels <= kMaxChannels) {
    for (int c = 0; c < header.channels; ++c) channels.push_back(c);
    return channels;
  }
  const auto& names = header.channel_names;
  for (const char* name : {"R", "G", "B"}) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "it has ", header.channels, " channels and none named ", name, ", and at most 4 can be taken"));
    }
    channels.push_back(static_cast<int>(found - names.begin()));
  }
  return channels;
}

template <class T>
void keep_channels(const std::vector<T>& all, std::size_t stride, const std::vector<int>& channels,
                   Array& kept) {
  T* out = reinterpret_cast<T*>(kept.mutable_bytes().data());
  for (std::size_t pixel = 0; pixel < all.size(); pixel += stride) {
    for (const int channel : channels) *out++ = all[pixel + static_cast<std::size_t>(channel)];
  }
}

constexpr std::array<std::pair<ElementType, images::Samples>, 9> kSamples = {{
    {ElementType::kUint8, images::Samples::kUint8},
    {ElementType::kUint16, images::Samples::kUint16},
    {ElementType::kUint32, images::Samples::kUint32},
    {ElementType::kUint64, images::Samples::kUint64},
    {ElementType::kInt32, images::Samples::kInt32},
    {ElementType::kInt64, images::Samples::kInt64},
    {ElementType::kFloat16, images::Samples::kFloat16},
    {ElementType::kFloat32, images::Samples::kFloat32},
    {ElementType::kFloat64, images::Samples::kFloat64},
}};

images::Samples samples_of(ElementType type) {
  for (const auto& [element, samples] : kSamples) {
    if (element == type) return samples;
  }
  return images::Samples::kOther;
}

/// The element type of a file's samples; nothing for those that arrays do not have.
std::optional<ElementType> element_type_of_samples(images::Samples wanted) {
  for (const auto& [element, samples] : kSamples) {
    if (samples == wanted) return element;
  }
  return std::nullopt;
}

/// `T` is as wide as an element of `type`.
template <class T>
absl::StatusOr<Array> read_elements(const OpenPicture& picture, ElementType type) {
  const images::Header& header = picture.header;
  const absl::StatusOr<std::vector<int>> channels = choose_channels(header);
  if (!channels.ok()) return channels.status();
  auto image =
      Array::allocate(type, {header.height, header.width, static_cast<std::int64_t>(channels->size())});
  if (!image.ok()) return image;
  if (static_cast<int>(channels->size()) == header.channels) {
    const std::string problem = picture.read(samples_of(type), image->mutable_bytes().data());
    if (!problem.empty()) return absl::DataLossError(problem);
    return image;
  }
  const auto stride = static_cast<std::size_t>(header.channels);
  std::vector<T> all(static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.height) *
                     stride);
  const std::string problem = picture.read(samples_of(type), all.data());
  if (!problem.empty()) return absl::DataLossError(problem);
  keep_channels(all, stride, *channels, *image);
  return image;
}

absl::StatusOr<Array> read_pixels(const OpenPicture& picture, ElementType type) {
  switch (element_bytes(type)) {
    case 1:
      return read_elements<std::uint8_t>(picture, type);
    case 2:
      return read_elements<std::uint16_t>(picture, type);
    case 4:
      return read_elements<std::uint32_t>(picture, type);
    default:
      return read_elements<std::uint64_t>(picture, type);
  }
}

/// OpenImageIO's readers say little of what is no image at all.
absl::StatusOr<OpenPicture> open_image(const std::string& path, images::AlphaColours colours) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return absl::NotFoundError(absl::StrCat("there is no file ", path, "; give an image file that exists"));
  if (std::filesystem::is_directory(status)) return no_image(path, "it is a folder");
  if (std::filesystem::file_size(path, error) == 0 && !error) return no_image(path, "it is empty");
  const absl::StatusOr<const images::ImageLibrary*> library = library_for(path);
  if (!library.ok()) return library.status();
  auto [file, why] = (*library)->open_path(path, colours);
  if (file == nullptr) {
    if (why.find("could not find a format reader") != std::string::npos)
      return no_image(path, "it is in no format that is known");
    if (why.find("nexpected end of file") != std::string::npos) return damaged(path, why);
    return no_image(path, why);
  }
  OpenPicture picture{*library, std::move(file), {}};
  picture.header = picture.library->header(*picture.file);
  if (picture.header.deep) return cannot_read(path, "it is a deep image", "flatten it");
  if (picture.header.depth > 1) return cannot_read(path, "it is a volume", "give one slice of it");
  return picture;
}

/// Reads the first picture in the elements that element_for(the file's samples) names.
template <class ElementFor>
absl::StatusOr<Array> read_image_as(const std::string& path, const ElementFor& element_for) {
  const auto picture = open_image(path, images::AlphaColours::kMultiplied);
  if (!picture.ok()) return picture.status();
  absl::StatusOr<Array> image = read_pixels(*picture, element_for(picture->header.samples));
  if (image.ok()) return image;
  const std::string why(image.status().message());
  if (absl::IsFailedPrecondition(image.status()))
    return cannot_read(path, why, "name three of them R, G and B, or keep at most 4");
  return absl::IsDataLoss(image.status()) ? damaged(path, why) : no_image(path, why);
}

}  // namespace

absl::StatusOr<Array> read_image_as_stored(const std::string& path) {
  const auto picture = open_image(path, images::AlphaColours::kAsStored);
  if (!picture.ok()) return picture.status();
  const images::Header& header = picture->header;
  const std::optional<ElementType> type = element_type_of_samples(header.samples);
  if (!type.has_value()) {
    return cannot_read(path, absl::StrCat("its samples are ", header.samples_name),
                       "unsigned integers of 8 to 64 bits, signed ones of 32 or 64, or floats are right");
  }
  auto image = Array::allocate(*type, {header.height, header.width, header.channels});
  if (!image.ok()) return image;
  const std::string problem = picture->read(header.samples, image->mutable_bytes().data());
  if (!problem.empty()) return damaged(path, problem);
  return image;
}

absl::StatusOr<Array> read_image(const std::string& path, HalfFloats halves) {
  return read_image_as(path, [halves](images::Samples samples) {
    if (samples == images::Samples::kUint8) return ElementType::kUint8;
    const bool keep = samples == images::Samples::kFloat16 && halves == HalfFloats::kKeep;
    return keep ? ElementType::kFloat16 : ElementType::kFloat32;
  });
}

absl::StatusOr<Array> read_image_samples(const std::string& path) {
  return read_image_as(path, [](images::Samples samples) {
    const ElementType type = element_type_of_samples(samples).value_or(ElementType::kFloat32);
    return type == ElementType::kUint64 || type == ElementType::kInt64 ? ElementType::kFloat32 : type;
  });
}

absl::Status check_image_name(const std::string& path) {
  const auto library = library_for(path);
  if (!library.ok()) return library.status();
  if ((*library)->writes(path)) return absl::OkStatus();
  return cannot_write_image(path, "no image format has such a name; end it with .exr, .tif or .png");
}

absl::Status check_keeps_samples(const std::string& path, ElementType type) {
  std::vector<std::string> right;
  switch (type) {
    case ElementType::kUint8:
      right = {".png", ".tif", ".tiff", ".bmp", ".tga", ".ppm", ".pgm"};
      break;
    case ElementType::kUint16:
      right = {".png", ".tif", ".tiff", ".ppm", ".pgm"};
      break;
    case ElementType::kUint32:
    case ElementType::kFloat16:  // TIFF files get them as float32
    case ElementType::kFloat32:
      right = {".exr", ".tif", ".tiff"};
      break;
    case ElementType::kInt32:
    case ElementType::kFloat64:
      right = {".tif", ".tiff"};
      break;
    default:
      break;
  }
  if (std::find(right.begin(), right.end(), extension_of(path)) != right.end()) return absl::OkStatus();
  right.emplace_back(".npy");
  return cannot_write_image(
      path, absl::StrCat("its format would change samples of ", std::string(element_name(type)),
                         "; end its name with ", absl::StrJoin(right, ", ")));
}

std::optional<ElementType> integer_samples(const std::string& path) {
  const auto picture = open_image(path, images::AlphaColours::kMultiplied);
  if (!picture.ok()) return std::nullopt;
  const std::optional<ElementType> type = element_type_of_samples(picture->header.samples);
  return type == ElementType::kUint8 || type == ElementType::kUint16 ? type : std::nullopt;
}

absl::Status write_image(const std::string& path, const ArrayView& image, Colours colours,
                         std::optional<ElementType> samples) {
  for (const std::int64_t extent : image.shape()) {
    if (extent >= 1 && extent <= std::numeric_limits<int>::max()) continue;
    return cannot_write_image(path, absl::StrCat("its shape is ", absl::StrJoin(image.shape(), " x "),
                                                 "; image files have extents of 1 to 2^31 - 1"));
  }
  if (absl::Status known = check_image_name(path); !known.ok()) return known;
  const auto library = library_for(path);
  if (!library.ok()) return library.status();
  const auto extent = [&](std::size_t axis) { return static_cast<int>(image.shape()[axis]); };
  const images::Picture picture{.width = extent(1),
                                .height = extent(0),
                                .channels = image.shape().size() > 2 ? extent(2) : 1,
                                .pixels = image.bytes().data(),
                                .samples = samples_of(image.type()),
                                .stored = samples_of(samples.value_or(image.type())),
                                .colours = colours == Colours::kAsStored ? images::AlphaColours::kAsStored
                                                                         : images::AlphaColours::kMultiplied};
  OutputFile file(path);
  std::int64_t written_to = 0;
  bool failed = false;
  const std::string problem =
      (*library)->write(path, picture, [&](std::int64_t position, std::span<const std::byte> bytes) {
        const bool written = (position == written_to || file.seek(position)) && file.write(bytes);
        failed = failed || !written;
        written_to = position + static_cast<std::int64_t>(bytes.size());
        return written;
      });
  // OpenImageIO's own words: "HDR can only support 3-channel images".
  if (!problem.empty() && !failed) {
    return cannot_write_image(
        path, absl::StrCat(problem,
                           "; .exr and .tif take any number of channels, of floats or of unsigned integers"));
  }
  return file.commit();  // which tells why writing failed
}

bool holds_floats(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".exr" || extension == ".hdr" || extension == ".tif" || extension == ".tiff";
}

}  // namespace cumulus::cli

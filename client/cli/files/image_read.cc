#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/files/channels.h"
#include "cli/files/image.h"
#include "cli/files/input.h"
#include "cli/files/samples.h"
#include "images/load.h"

namespace cumulus::cli {
namespace {

constexpr int kMaxChannels = 4;

absl::Status cannot_read(const std::string& path, const std::string& why, const std::string& what_to_do) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", input_name(path), " as an image: ", why, "; ", what_to_do));
}

absl::Status no_image(const std::string& path, const std::string& why) {
  return cannot_read(path, why, "give an OpenEXR, HDR, PNG, TIFF or JPEG file");
}

/// Of a file that begins as an image.
absl::Status damaged(const std::string& path, const std::string& why) {
  return cannot_read(path, why, "it is damaged or not complete: copy or render it anew");
}

/// An image file whose picture is chosen.
struct OpenPicture {
  const images::ImageLibrary* library = nullptr;
  std::shared_ptr<FileBytes> bytes;  // of standard input; outlives the file
  images::ImageFile file;
  images::Header header;
};

/// How frames are named here that `path` names as other programs do, by sky.####.exr or sky.%04d.exr.
std::string frames_of(const std::string& path) {
  static const std::regex kNumber("#+|%0?[0-9]*d");
  if (!std::regex_search(path, kNumber)) return "";
  return absl::StrCat(", such as numbered frames by ", std::regex_replace(path, kNumber, "*"));
}

absl::Status check_file(const std::string& path) {
  if (is_standard_input(path)) return absl::OkStatus();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return absl::NotFoundError(
        absl::StrCat("there is no file ", path, "; give an image file that exists", frames_of(path)));
  if (std::filesystem::is_directory(status)) {
    return cannot_read(path, "it is a folder",
                       absl::StrCat("give a file of it or, of a command that takes several, ",
                                    (std::filesystem::path(path) / "*.exr").string()));
  }
  if (std::filesystem::file_size(path, error) == 0 && !error) return no_image(path, "it is empty");
  return absl::OkStatus();
}

std::string first_bytes(const std::string& path) {
  std::string bytes(16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

/// Readers say little of what is no image at all.
absl::StatusOr<OpenPicture> open_image(const std::string& path, images::AlphaColours colours) {
  if (absl::Status there = check_file(path); !there.ok()) return there;
  OpenPicture picture;
  // What cannot be mapped is read, once.
  std::error_code error;
  const bool piped = is_standard_input(path) || !std::filesystem::is_regular_file(path, error);
  if (piped) {
    auto bytes = FileBytes::open(path);
    if (!bytes.ok()) return bytes.status();
    picture.bytes = *std::move(bytes);
    if (picture.bytes->text().empty())
      return cannot_read(path, "nothing comes there", "look at what the program that writes there said");
  }
  const std::string format = images::format_by_first_bytes(
      piped ? std::string(picture.bytes->text().substr(0, 16)) : first_bytes(path));
  const absl::StatusOr<const images::ImageLibrary*> library = images::library_that_reads(format);
  if (!library.ok()) {
    return absl::Status(library.status().code(), absl::StrCat("this cumulus cannot open ", path, ": ",
                                                              std::string(library.status().message())));
  }
  picture.library = *library;
  if (piped && format.empty()) return no_image(path, "what comes there is in no format that is known");
  auto [file, why] = piped ? picture.library->open_memory(format, picture.bytes->text(), colours)
                           : picture.library->open_path(path, colours);
  if (file == nullptr) {
    if (why.find("could not find a format reader") != std::string::npos)
      return no_image(path, "it is in no format that is known");
    if (why.find("nexpected end of file") != std::string::npos) return damaged(path, why);
    return no_image(path, why);
  }
  picture.file = std::move(file);
  return picture;
}

/// The number of the picture that is meant.
absl::StatusOr<std::size_t> find_subimage(const std::string& path, const std::string& wanted,
                                          const std::vector<std::string>& parts) {
  if (wanted.empty()) return 0;
  const auto named = std::find(parts.begin(), parts.end(), wanted);
  if (named != parts.end()) return static_cast<std::size_t>(named - parts.begin());
  std::size_t number = 0;
  if (absl::SimpleAtoi(wanted, &number) && number < std::max<std::size_t>(parts.size(), 1)) return number;
  std::vector<std::string> names;
  for (std::size_t part = 0; part < parts.size(); ++part)
    names.push_back(parts[part].empty() ? absl::StrCat(part) : absl::StrCat(part, " (", parts[part], ")"));
  return absl::InvalidArgumentError(
      absl::StrCat("--subimage: is ", wanted, "; of ", path, ", ", absl::StrJoin(names, ", "), " is right"));
}

absl::Status choose_picture(const std::string& path, const PictureChoice& choice, OpenPicture& picture,
                            std::size_t& number) {
  picture.header = picture.library->header(*picture.file);
  const auto found = find_subimage(path, choice.subimage, picture.header.metadata.parts);
  if (!found.ok()) return found.status();
  number = *found;
  if (number != 0) {
    if (!picture.library->select_picture(*picture.file, static_cast<int>(number)))
      return damaged(path, absl::StrCat("its picture ", number, " cannot be opened"));
    picture.header = picture.library->header(*picture.file);
  }
  const images::Header& header = picture.header;
  if (header.deep) return cannot_read(path, "it is a deep image", "flatten it");
  if (header.depth > 1) return cannot_read(path, "it is a volume", "give one slice of it");
  if (header.channels < 1) return cannot_read(path, "it has no channels", "give one that has");
  return absl::OkStatus();
}

/// That a name is one of a part, where channels are asked for.
std::string part_among(const std::vector<std::string>& parts, const std::vector<std::string>& names) {
  const auto part = std::find_first_of(parts.begin(), parts.end(), names.begin(), names.end());
  if (part == parts.end() || part->empty()) return "";
  return absl::StrCat("; ", *part, " is a part of the file: --subimage ", *part);
}

/// Where in the file each channel to keep is.
absl::StatusOr<std::vector<int>> choose_channels(const std::string& path, const images::Header& header,
                                                 const ReadOptions& options) {
  if (!options.choice.channels.empty()) {
    absl::StatusOr<std::vector<int>> found = find_channels(header.channel_names, options.choice.channels);
    if (!found.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("--channels: of ", path, ": ", std::string(found.status().message()),
                       part_among(header.metadata.parts, options.choice.channels)));
    if (found->size() > kMaxChannels && !options.all_channels) {
      return absl::InvalidArgumentError(absl::StrCat("--channels: names ", found->size(), " channels of ",
                                                     path, "; at most 4 can be taken"));
    }
    return found;
  }
  std::vector<int> channels;
  if (header.channels <= kMaxChannels || options.all_channels) {
    for (int c = 0; c < header.channels; ++c) channels.push_back(c);
    return channels;
  }
  absl::StatusOr<std::vector<int>> colours = find_channels(header.channel_names, {"R", "G", "B"});
  if (colours.ok()) return colours;
  std::string missing;
  for (const char* name : {"B", "G", "R"}) {
    if (!find_channels(header.channel_names, {name}).ok()) missing = name;
  }
  return cannot_read(path,
                     absl::StrCat("it has ", header.channels, " channels and none named ", missing,
                                  ", and at most 4 can be taken"),
                     absl::StrCat("where the command has --channels, choose them by it: of ",
                                  absl::StrJoin(header.channel_names, ", ")));
}

ElementType element_for(const images::Header& header, ReadAs as) {
  const ElementType own = element_type_of(header.samples).value_or(ElementType::kFloat32);
  switch (as) {
    case ReadAs::kAsStored:
      return own;
    case ReadAs::kSamples:
      return own == ElementType::kUint64 || own == ElementType::kInt64 ? ElementType::kFloat32 : own;
    case ReadAs::kHalves:
      if (own == ElementType::kFloat16) return own;
      break;
    case ReadAs::kBytes:
      return own == ElementType::kUint8 ? own : ElementType::kFloat32;
    case ReadAs::kFloats:
      break;
  }
  return own == ElementType::kUint8 && header.straight_alpha < 0 ? own : ElementType::kFloat32;
}

/// Reads as few of the file's channels as hold all that are wanted.
absl::StatusOr<Array> read_pixels(const std::string& path, const OpenPicture& picture, ElementType type,
                                  const std::vector<int>& channels) {
  const auto [lowest, highest] = std::minmax_element(channels.begin(), channels.end());
  const int first = *lowest;
  const int end = *highest + 1;
  const images::Header& header = picture.header;
  absl::StatusOr<Array> range = Array::allocate(type, {header.height, header.width, end - first});
  if (!range.ok()) return range;
  const std::string problem =
      picture.library->read(*picture.file, first, end, samples_of(type), range->mutable_bytes().data());
  if (!problem.empty()) return damaged(path, problem);
  std::vector<int> within;
  bool in_order = static_cast<int>(channels.size()) == end - first;
  for (std::size_t i = 0; i < channels.size(); ++i) {
    within.push_back(channels[i] - first);
    in_order = in_order && within.back() == static_cast<int>(i);
  }
  return in_order ? std::move(range) : take_channels(range->view(), within);
}

void describe(const images::Header& header, const std::vector<int>& channels, ImagePicture& picture) {
  picture.metadata = header.metadata;
  picture.straight_alpha = header.straight_alpha >= 0;
  for (int channel = 0; channel < header.channels; ++channel) {
    if (std::find(channels.begin(), channels.end(), channel) == channels.end())
      picture.left_out.push_back(header.channel_names[static_cast<std::size_t>(channel)]);
  }
  for (const int channel : channels) {
    const auto at = static_cast<std::size_t>(channel);
    picture.channel_names.push_back(header.channel_names[at]);
    picture.channel_samples.push_back(at < header.channel_samples.size() ? header.channel_samples[at]
                                                                         : header.samples);
  }
}

/// Also what the file says of its windows.
absl::Status turn_upright(ImagePicture& picture) {
  images::Metadata& metadata = picture.metadata;
  if (metadata.format == "openexr" || metadata.orientation == 1) return absl::OkStatus();
  absl::StatusOr<Array> turned = upright(std::move(picture.pixels), metadata.orientation);
  if (!turned.ok()) return turned.status();
  picture.pixels = *std::move(turned);
  if (metadata.orientation >= 5) {
    for (images::Window* window : {&metadata.data, &metadata.display}) {
      std::swap(window->x, window->y);
      std::swap(window->width, window->height);
    }
  }
  metadata.orientation = 1;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImagePicture> read_image_picture(const std::string& path, const ReadOptions& options) {
  const bool multiply = options.as != ReadAs::kSamples && options.as != ReadAs::kAsStored;
  auto opened =
      open_image(path, multiply ? images::AlphaColours::kMultiplied : images::AlphaColours::kAsStored);
  if (!opened.ok()) return opened.status();
  ImagePicture picture;
  absl::Status chosen = choose_picture(path, options.choice, *opened, picture.subimage);
  if (!chosen.ok()) return chosen;
  const images::Header& header = opened->header;
  if (options.as == ReadAs::kAsStored && !element_type_of(header.samples).has_value()) {
    return cannot_read(path, absl::StrCat("its samples are ", header.samples_name),
                       "unsigned integers of 8 to 64 bits, signed ones of 32 or 64, or floats are right");
  }
  const absl::StatusOr<std::vector<int>> channels = choose_channels(path, header, options);
  if (!channels.ok()) return channels.status();
  absl::StatusOr<Array> pixels = read_pixels(path, *opened, element_for(header, options.as), *channels);
  if (!pixels.ok()) return pixels.status();
  picture.pixels = *std::move(pixels);
  describe(header, *channels, picture);
  if (absl::Status turned = turn_upright(picture); !turned.ok()) return turned;
  return picture;
}

absl::StatusOr<Array> read_image(const std::string& path) {
  absl::StatusOr<ImagePicture> picture = read_image_picture(path, {.as = ReadAs::kBytes});
  if (!picture.ok()) return picture.status();
  return std::move(picture->pixels);
}

absl::StatusOr<Array> read_image_as_stored(const std::string& path) {
  absl::StatusOr<ImagePicture> picture =
      read_image_picture(path, {.as = ReadAs::kAsStored, .choice = {}, .all_channels = true});
  if (!picture.ok()) return picture.status();
  return std::move(picture->pixels);
}

std::optional<ElementType> integer_samples(const std::string& path) {
  const auto opened = open_image(path, images::AlphaColours::kAsStored);
  if (!opened.ok()) return std::nullopt;
  const std::optional<ElementType> type = element_type_of(opened->library->header(*opened->file).samples);
  return type == ElementType::kUint8 || type == ElementType::kUint16 ? type : std::nullopt;
}

std::optional<ElementType> integer_samples(const ImagePicture& picture) {
  if (picture.channel_samples.empty()) return std::nullopt;
  const std::optional<ElementType> type = element_type_of(picture.channel_samples.front());
  return type == ElementType::kUint8 || type == ElementType::kUint16 ? type : std::nullopt;
}

}  // namespace cumulus::cli

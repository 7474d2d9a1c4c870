#include "cli/files/picture.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "cli/files/extension.h"
#include "cli/files/input.h"
#include "cli/files/samples.h"
#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

/// Image files that hold samples of that type.
bool holds(const std::string& path, ElementType type) {
  if (type == ElementType::kUint8 || type == ElementType::kUint16 || type == ElementType::kUint32)
    return holds_integers(path, type);
  const std::string extension = extension_of(path);
  const bool tiff = extension == ".tif" || extension == ".tiff";
  if (type == ElementType::kFloat64) return tiff;
  if (type == ElementType::kFloat16) return extension == ".exr";
  return holds_floats(path);
}

/// As which integers, or as floats as they are, a picture of `from` goes into `path`.
std::optional<ElementType> stored_as(const std::string& path, const PictureInput& from,
                                     const PictureOptions& options, bool in_range) {
  if (options.samples.has_value()) return options.samples;
  if (!from.integers.has_value() || !in_range) return std::nullopt;
  if (holds_integers(path, *from.integers) || !holds_floats(path)) return from.integers;
  return std::nullopt;
}

/// A mask of zeros and ones in floats: of bytes 255 would be 1.
absl::StatusOr<Array> mask_in_floats(const Array& mask) {
  absl::StatusOr<Array> floats = Array::allocate(ElementType::kFloat32, mask.shape());
  if (!floats.ok()) return floats;
  auto* to = reinterpret_cast<float*>(floats->mutable_bytes().data());
  for (const std::byte truth : mask.bytes()) *to++ = truth == std::byte{0} ? 0.0F : 1.0F;
  return floats;
}

}  // namespace

absl::StatusOr<PictureInput> read_picture(const std::string& path, ReadAs as, const PictureOptions& options,
                                          bool all_channels) {
  PictureInput input;
  input.path = path;
  if (holds_npy(path)) {
    if (!options.choice.subimage.empty() || !options.choice.channels.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          " is a .npy file, which has neither pictures nor channels by name; leave --subimage and "
          "--channels out"));
    }
    absl::StatusOr<Array> array = read_npy(path);
    if (array.ok() && as == ReadAs::kFloats && holds_truth_values(path)) array = mask_in_floats(*array);
    if (!array.ok()) return array.status();
    input.pixels = *std::move(array);
    if (input.pixels.type() == ElementType::kUint8) input.integers = ElementType::kUint8;
  } else {
    absl::StatusOr<ImagePicture> picture = read_image_picture(path, {as, options.choice, all_channels});
    if (!picture.ok()) return picture.status();
    input.pixels = std::move(picture->pixels);
    picture->pixels = Array();
    input.integers = integer_samples(*picture);
    input.image = *std::move(picture);
  }
  absl::Status treated =
      treat_non_finite(options.non_finite, path, input.channel_names(), input.pixels, input.non_finite);
  if (!treated.ok()) return treated;
  return input;
}

PictureOptions searched_by_server(PictureOptions options, bool dry_run) {
  if (options.non_finite == NonFinite::kRefuse && !dry_run) options.non_finite = NonFinite::kRefusedByServer;
  return options;
}

NonFinitePixels policy_of_server(const PictureOptions& options) {
  return options.non_finite == NonFinite::kRefuse ? NonFinitePixels::kRefuse : NonFinitePixels::kKeep;
}

absl::Status count_non_finite(const absl::Status& refusal, const PictureInput& input, Array& pixels) {
  if (error_reason(refusal) != "NON_FINITE_PIXEL") return refusal;
  NonFiniteValues found;
  const absl::Status counted =
      treat_non_finite(NonFinite::kRefuse, input.path, input.channel_names(), pixels, found);
  return counted.ok() ? refusal : counted;
}

absl::Status check_room(const std::string& path, const PictureInput& from, const PictureOptions& options,
                        bool in_range) {
  if (is_npy(path)) {
    if (!options.samples.has_value() && options.compression.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(options.samples.has_value() ? "-d" : "--compression",
                                                   ": is for image files, and ", path,
                                                   " keeps the elements as they are; leave it out"));
  }
  if (absl::Status known = check_image_name(path); !known.ok()) return known;
  if (options.samples.has_value()) {
    if (holds(path, *options.samples)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("-d: is ", std::string(element_name(*options.samples)),
                                                   ", which files such as ", path,
                                                   " do not hold; .exr has float16 and float32, .tif uint8, "
                                                   "uint16, float32 and float64, .png uint8 and uint16"));
  }
  if (holds_floats(path) || (in_range && from.integers.has_value())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the result does not fit into the 0 to 1 of ", path,
                   "; end its name with .exr, .tif, .hdr or .npy, or cut it off with "
                   "-d uint8 or -d uint16"));
}

absl::Status write_picture(const std::string& path, const ArrayView& picture, const PictureInput& from,
                           const PictureOptions& options, bool in_range) {
  if (is_npy(path)) return write_npy(path, picture);
  if (picture.shape().size() > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of images does not fit into ", path, "; end its name with .npy"));
  }
  return write_image(path, picture,
                     {.colours = Colours::kMultipliedByAlpha,
                      .samples = stored_as(path, from, options, in_range),
                      .compression = options.compression,
                      .from = from.image.has_value() ? &*from.image : nullptr});
}

absl::Status write_picture(const std::string& path, const FileArray& picture, const PictureInput& from,
                           const PictureOptions& options, bool in_range) {
  if (picture.file != nullptr) return picture.file->finish(picture.array.view());
  return write_picture(path, picture.array.view(), from, options, in_range);
}

std::vector<std::string> coding_warnings(const PictureInput& input, const std::string& output) {
  const auto linear = [](const std::string& extension) { return extension == ".exr" || extension == ".hdr"; };
  static const std::vector<std::string> kCoded = {".png", ".jpg", ".jpeg", ".bmp", ".tga", ".ppm"};
  if (!input.image.has_value() || input.image->channel_names.size() < 3) return {};
  const std::string& format = input.image->metadata.format;
  const std::string extension = extension_of(output);
  const bool from_linear = format == "openexr" || format == "hdr";
  if (!from_linear && input.integers.has_value() && linear(extension)) {
    return {absl::StrCat(output, " holds the samples of ", input_name(input.path),
                         " as they are, most likely sRGB, where ", extension,
                         " files are taken for linear; decode them before, where colours are to be kept")};
  }
  if (from_linear && std::find(kCoded.begin(), kCoded.end(), extension) != kCoded.end()) {
    return {absl::StrCat(output, " holds linear values as they are, where ", extension,
                         " files are taken for sRGB, and looks dark; --preview writes a picture to look at")};
  }
  return {};
}

void describe_picture(const PictureInput& input, const PictureOptions& options,
                      const std::vector<std::string>& outputs, Report& report,
                      std::vector<std::string> more) {
  std::vector<std::string> warnings;
  if (input.non_finite.count > 0) {
    report.add("non_finite", input.non_finite.count);
    warnings.push_back(absl::StrCat(input.non_finite.first, options.non_finite == NonFinite::kClamp
                                                                ? ", and was clamped"
                                                                : ", and spoils what is computed from it"));
  }
  if (input.image.has_value()) {
    const ImagePicture& image = *input.image;
    if (image.metadata.parts.size() > 1) {
      report.add("pictures", image.metadata.parts.size());
      report.add("subimage", image.subimage);
      if (!image.metadata.parts[image.subimage].empty())
        report.add("part", image.metadata.parts[image.subimage]);
    }
    if (image.channel_names.size() > 1) report.add("channel_names", image.channel_names);
    for (const std::string& output : outputs) {
      if (output.empty()) continue;
      const std::vector<std::string> lost = not_kept(is_npy(output) ? "" : output, image);
      if (!lost.empty())
        warnings.push_back(absl::StrCat(output, " does not keep: ", absl::StrJoin(lost, ", ")));
    }
  }
  std::move(more.begin(), more.end(), std::back_inserter(warnings));
  if (!warnings.empty()) report.add("warnings", std::move(warnings));
}

}  // namespace cumulus::cli

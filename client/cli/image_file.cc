#include "cli/image_file.h"

#include <OpenImageIO/filesystem.h>
#include <OpenImageIO/imageio.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "cli/output_file.h"

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

absl::Status cannot_write(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot write the image ", path, ": ", why));
}

absl::Status no_format(const std::string& path) {
  (void)OIIO::geterror();  // says the same at length
  return cannot_write(path, "no image format has such a name; end it with .exr, .tif or .png");
}

/// Through which a format writes, as some of OpenImageIO's formats do not notice that the disk is full.
class CheckedWriter final : public OIIO::Filesystem::IOProxy {
 public:
  explicit CheckedWriter(OutputFile& file) : IOProxy("", Write), file_(file) {}

  const char* proxytype() const override { return "checked"; }
  std::size_t write(const void* bytes, std::size_t count) override {
    const bool written = (m_pos == written_to_ || file_.seek(m_pos)) &&
                         file_.write({static_cast<const std::byte*>(bytes), count});
    failed_ = failed_ || !written;
    m_pos += static_cast<std::int64_t>(count);
    written_to_ = m_pos;
    end_ = std::max(end_, m_pos);
    return written ? count : 0;
  }
  std::size_t size() const override { return static_cast<std::size_t>(end_); }
  bool failed() const { return failed_; }

 private:
  OutputFile& file_;
  std::int64_t written_to_ = 0;
  std::int64_t end_ = 0;
  bool failed_ = false;
};

/// The writer for files of this name that takes a CheckedWriter; null where there is none.
std::unique_ptr<OIIO::ImageOutput> create_output(const std::string& path) {
  auto output = OIIO::ImageOutput::create(path);
  if (output != nullptr && output->supports("ioproxy") == 0) output.reset();
  return output;
}

/// Where in the file each channel to keep is.
absl::StatusOr<std::vector<int>> choose_channels(const OIIO::ImageSpec& spec) {
  std::vector<int> channels;
  if (spec.nchannels <= kMaxChannels) {
    for (int c = 0; c < spec.nchannels; ++c) channels.push_back(c);
    return channels;
  }
  for (const char* name : {"R", "G", "B"}) {
    const int channel = spec.channelindex(name);
    if (channel < 0) {
      return absl::InvalidArgumentError(absl::StrCat("it has ", spec.nchannels, " channels and none named ",
                                                     name, ", and at most 4 can be taken"));
    }
    channels.push_back(channel);
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

OIIO::TypeDesc type_of(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return OIIO::TypeDesc::UINT8;
    case ElementType::kUint16:
      return OIIO::TypeDesc::UINT16;
    case ElementType::kUint32:
      return OIIO::TypeDesc::UINT32;
    case ElementType::kUint64:
      return OIIO::TypeDesc::UINT64;
    case ElementType::kInt32:
      return OIIO::TypeDesc::INT32;
    case ElementType::kInt64:
      return OIIO::TypeDesc::INT64;
    case ElementType::kFloat16:
      return OIIO::TypeDesc::HALF;
    case ElementType::kFloat32:
      return OIIO::TypeDesc::FLOAT;
    case ElementType::kFloat64:
      return OIIO::TypeDesc::DOUBLE;
  }
  return OIIO::TypeDesc::UNKNOWN;
}

/// `T` is as wide as an element of `type`.
template <class T>
absl::StatusOr<Array> read_pixels(OIIO::ImageInput& input, ElementType type) {
  const OIIO::ImageSpec& spec = input.spec();
  const absl::StatusOr<std::vector<int>> channels = choose_channels(spec);
  if (!channels.ok()) return channels.status();
  const OIIO::TypeDesc samples = type_of(type);
  auto image = Array::allocate(type, {spec.height, spec.width, static_cast<std::int64_t>(channels->size())});
  if (!image.ok()) return image;
  if (static_cast<int>(channels->size()) == spec.nchannels) {
    if (!input.read_image(0, 0, 0, -1, samples, image->mutable_bytes().data())) {
      return absl::DataLossError(input.geterror());
    }
    return image;
  }
  std::vector<T> all(static_cast<std::size_t>(spec.image_pixels()) *
                     static_cast<std::size_t>(spec.nchannels));
  if (!input.read_image(0, 0, 0, -1, samples, all.data())) return absl::DataLossError(input.geterror());
  keep_channels(all, static_cast<std::size_t>(spec.nchannels), *channels, *image);
  return image;
}

/// The element type of a file's samples; nothing for those that arrays do not have.
std::optional<ElementType> element_type_of_samples(OIIO::TypeDesc samples) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kUint16, ElementType::kUint32,
                                 ElementType::kUint64, ElementType::kInt32, ElementType::kInt64,
                                 ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    if (type_of(type) == samples) return type;
  }
  return std::nullopt;
}

// OpenImageIO multiplies colours by alpha, with a loss, unless it is told not to.
constexpr const char* kLeaveColours = "oiio:UnassociatedAlpha";

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

/// OpenImageIO's readers say little of what is no image at all.
absl::StatusOr<std::unique_ptr<OIIO::ImageInput>> open_image(const std::string& path,
                                                             const OIIO::ImageSpec* settings = nullptr) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return absl::NotFoundError(absl::StrCat("there is no file ", path, "; give an image file that exists"));
  if (std::filesystem::is_directory(status)) return no_image(path, "it is a folder");
  if (std::filesystem::file_size(path, error) == 0 && !error) return no_image(path, "it is empty");
  auto input = OIIO::ImageInput::open(path, settings);
  if (input != nullptr) return input;
  const std::string why = OIIO::geterror();
  if (why.find("could not find a format reader") != std::string::npos)
    return no_image(path, "it is in no format that is known");
  if (why.find("nexpected end of file") != std::string::npos) return damaged(path, why);
  return no_image(path, why);
}

}  // namespace

absl::StatusOr<Array> read_image_as_stored(const std::string& path) {
  OIIO::ImageSpec settings;
  settings.attribute(kLeaveColours, 1);
  const auto input = open_image(path, &settings);
  if (!input.ok()) return input.status();
  const OIIO::ImageSpec& spec = (*input)->spec();
  const std::optional<ElementType> type = element_type_of_samples(spec.format);
  if (!type.has_value()) {
    return cannot_read(path, absl::StrCat("its samples are ", spec.format.c_str()),
                       "unsigned integers of 8 to 64 bits, or floats, are right");
  }
  auto image = Array::allocate(*type, {spec.height, spec.width, spec.nchannels});
  if (!image.ok()) return image;
  if (!(*input)->read_image(0, 0, 0, -1, spec.format, image->mutable_bytes().data()))
    return damaged(path, (*input)->geterror());
  return image;
}

absl::StatusOr<Array> read_image(const std::string& path, HalfFloats halves) {
  const auto opened = open_image(path);
  if (!opened.ok()) return opened.status();
  OIIO::ImageInput& input = **opened;
  const auto read = [&]() -> absl::StatusOr<Array> {
    const OIIO::TypeDesc samples = input.spec().format;
    if (samples == OIIO::TypeDesc::UINT8) return read_pixels<std::uint8_t>(input, ElementType::kUint8);
    if (samples == OIIO::TypeDesc::HALF && halves == HalfFloats::kKeep)
      return read_pixels<std::uint16_t>(input, ElementType::kFloat16);
    return read_pixels<float>(input, ElementType::kFloat32);
  };
  absl::StatusOr<Array> image = read();
  if (image.ok()) return image;
  const std::string why(image.status().message());
  return absl::IsDataLoss(image.status()) ? damaged(path, why) : no_image(path, why);
}

absl::Status check_image_name(const std::string& path) {
  return create_output(path) != nullptr ? absl::OkStatus() : no_format(path);
}

std::optional<ElementType> integer_samples(const std::string& path) {
  const auto input = OIIO::ImageInput::open(path);
  if (input == nullptr) {
    (void)OIIO::geterror();
    return std::nullopt;
  }
  const OIIO::TypeDesc samples = input->spec().format;
  if (samples == OIIO::TypeDesc::UINT8) return ElementType::kUint8;
  if (samples == OIIO::TypeDesc::UINT16) return ElementType::kUint16;
  return std::nullopt;
}

absl::Status write_image(const std::string& path, const ArrayView& image, Colours colours,
                         std::optional<ElementType> samples) {
  for (const std::int64_t extent : image.shape()) {
    if (extent >= 1 && extent <= std::numeric_limits<int>::max()) continue;
    return cannot_write(path, absl::StrCat("its shape is ", absl::StrJoin(image.shape(), " x "),
                                           "; image files have extents of 1 to 2^31 - 1"));
  }
  if (absl::Status known = check_image_name(path); !known.ok()) return known;
  OutputFile file(path);
  CheckedWriter writer(file);
  const auto output = create_output(path);  // after the writer, which it uses to its end
  const auto extent = [&](std::size_t axis) { return static_cast<int>(image.shape()[axis]); };
  const OIIO::TypeDesc type = type_of(image.type());
  OIIO::ImageSpec spec(extent(1), extent(0), image.shape().size() > 2 ? extent(2) : 1,
                       type_of(samples.value_or(image.type())));
  if (colours == Colours::kAsStored) spec.attribute(kLeaveColours, 1);
  output->set_ioproxy(&writer);
  const bool done =
      output->open(path, spec) && output->write_image(type, image.bytes().data()) && output->close();
  if (!done && !writer.failed()) return cannot_write(path, output->geterror());
  return file.commit();
}

bool holds_floats(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension == ".exr" || extension == ".hdr" || extension == ".tif" || extension == ".tiff";
}

}  // namespace cumulus::cli

// The module of all formats that own_formats.cc does not read and write: everything that calls OpenImageIO.
#include <OpenImageIO/filesystem.h>
#include <OpenImageIO/imageio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "images/image_library.h"
#include "images/samples.h"

namespace cumulus::images {

struct OpenFile {
  std::optional<OIIO::Filesystem::IOMemReader> memory;  // outlives input, which may read from it
  std::unique_ptr<OIIO::ImageInput> input;
  int picture = 0;
  AlphaColours colours = AlphaColours::kMultiplied;
};

namespace {

constexpr std::array<std::pair<Samples, OIIO::TypeDesc::BASETYPE>, 9> kTypes = {{
    {Samples::kUint8, OIIO::TypeDesc::UINT8},
    {Samples::kUint16, OIIO::TypeDesc::UINT16},
    {Samples::kUint32, OIIO::TypeDesc::UINT32},
    {Samples::kUint64, OIIO::TypeDesc::UINT64},
    {Samples::kInt32, OIIO::TypeDesc::INT32},
    {Samples::kInt64, OIIO::TypeDesc::INT64},
    {Samples::kFloat16, OIIO::TypeDesc::HALF},
    {Samples::kFloat32, OIIO::TypeDesc::FLOAT},
    {Samples::kFloat64, OIIO::TypeDesc::DOUBLE},
}};

OIIO::TypeDesc type_of(Samples samples) {
  for (const auto& [ours, type] : kTypes) {
    if (ours == samples) return type;
  }
  return OIIO::TypeDesc::UNKNOWN;
}

Samples samples_of(OIIO::TypeDesc format) {
  for (const auto& [ours, type] : kTypes) {
    if (OIIO::TypeDesc(type) == format) return ours;
  }
  return Samples::kOther;
}

// OpenImageIO multiplies colours by alpha, with a loss, unless it is told not to. We do it as the samples
// that are asked for.
constexpr const char* kStraightAlpha = "oiio:UnassociatedAlpha";

/// The reader or writer, if it takes an IOProxy in place of a file; otherwise null.
template <class Format>
std::unique_ptr<Format> if_by_proxy(std::unique_ptr<Format> format) {
  if (format == nullptr) (void)OIIO::geterror();
  return format != nullptr && format->supports("ioproxy") != 0 ? std::move(format) : nullptr;
}

/// A reader for files in memory; null where the format has none.
std::unique_ptr<OIIO::ImageInput> create_memory_input(const std::string& format) {
  return if_by_proxy(OIIO::ImageInput::create(format));
}

/// The writer for files of this name that takes a ByteWriter; null where there is none.
std::unique_ptr<OIIO::ImageOutput> create_output(const std::string& path) {
  return if_by_proxy(OIIO::ImageOutput::create(path));
}

ImageFile keep(std::unique_ptr<OpenFile> file) {
  return {file.release(), CloseFile{[](OpenFile* closed) { delete closed; }}};
}

/// Through which a format writes, as some of OpenImageIO's formats do not notice that the disk is full.
class ByteWriter final : public OIIO::Filesystem::IOProxy {
 public:
  explicit ByteWriter(const WriteBytes& write_bytes) : IOProxy("", Write), write_bytes_(write_bytes) {}

  const char* proxytype() const override { return "bytes"; }
  std::size_t write(const void* bytes, std::size_t count) override {
    const bool written = write_bytes_(m_pos, {static_cast<const std::byte*>(bytes), count});
    m_pos += static_cast<std::int64_t>(count);
    end_ = std::max(end_, m_pos);
    return written ? count : 0;
  }
  std::size_t size() const override { return static_cast<std::size_t>(end_); }

 private:
  const WriteBytes& write_bytes_;
  std::int64_t end_ = 0;
};

/// Of a failure, as readers may fail without a word, or say the same of each strip that follows.
std::string reason(const std::string& error) {
  return error.empty() ? "OpenImageIO gives no reason" : error.substr(0, error.find('\n'));
}

void keep_openimageio_to_one_thread() {
  keep_to_one_thread();
  OIIO::attribute("threads", 1);
  OIIO::attribute("exr_threads", -1);
}

bool reads_from_memory(const std::string& format) { return create_memory_input(format) != nullptr; }

OIIO::ImageSpec leave_colours() {
  OIIO::ImageSpec settings;
  settings.attribute(kStraightAlpha, 1);
  return settings;
}

OpenedFile open_memory(const std::string& format, std::string_view bytes, AlphaColours colours) {
  auto file = std::make_unique<OpenFile>();
  file->colours = colours;
  file->input = create_memory_input(format);
  if (file->input == nullptr) return {{}, "OpenImageIO cannot read " + format + " from memory"};
  file->memory.emplace(bytes.data(), bytes.size());
  file->input->threads(1);
  file->input->set_ioproxy(&*file->memory);
  OIIO::ImageSpec first;
  if (!file->input->open("request." + format, first, leave_colours())) return {{}, file->input->geterror()};
  return {keep(std::move(file))};
}

OpenedFile open_path(const std::string& path, AlphaColours colours) {
  const OIIO::ImageSpec settings = leave_colours();
  auto file = std::make_unique<OpenFile>();
  file->colours = colours;
  file->input = OIIO::ImageInput::open(path, &settings);
  if (file->input == nullptr) return {{}, OIIO::geterror()};
  return {keep(std::move(file))};
}

bool select_picture(OpenFile& file, int picture) {
  if (!file.input->seek_subimage(picture, 0)) {
    (void)file.input->geterror();
    return false;
  }
  file.picture = picture;
  return true;
}

Attribute attribute_of(const OIIO::ParamValue& value) {
  const std::string type = value.type().c_str();
  if (type == "string") return {value.name().string(), type, value.get_string()};
  return {value.name().string(), type,
          std::string(static_cast<const char*>(value.data()), static_cast<std::size_t>(value.datasize()))};
}

Metadata metadata_of(const OpenFile& file) {
  const OIIO::ImageSpec& spec = file.input->spec();
  Metadata metadata;
  metadata.format = file.input->format_name();
  metadata.data = {spec.x, spec.y, spec.width, spec.height};
  metadata.display = {spec.full_x, spec.full_y, spec.full_width, spec.full_height};
  metadata.orientation = std::clamp(spec.get_int_attribute("Orientation", 1), 1, 8);
  metadata.compression = spec.get_string_attribute("compression");
  // Each is counted by opening it; of many, only that there are more. OpenImageIO's reader of WebP fails at
  // the picture after one that it has not found.
  constexpr int kMostParts = 64;
  const bool countable = metadata.format != "webp";
  const int own = file.picture;
  int parts = 1;
  while (countable && parts < kMostParts && file.input->seek_subimage(parts, 0)) ++parts;
  (void)file.input->geterror();
  (void)file.input->seek_subimage(own, 0);
  metadata.parts.assign(static_cast<std::size_t>(parts), "");
  for (const OIIO::ParamValue& value : file.input->spec().extra_attribs) {
    const std::string name = value.name().string();
    // Strings in lists are pointers.
    const bool keeps = value.type().basetype != OIIO::TypeDesc::STRING || value.type() == OIIO::TypeString;
    if (keeps && name != "Orientation" && name != "compression")
      metadata.attributes.push_back(attribute_of(value));
  }
  return metadata;
}

int straight_alpha(const OIIO::ImageSpec& spec) {
  return spec.get_int_attribute(kStraightAlpha, 0) != 0 ? spec.alpha_channel : -1;
}

Header header(const OpenFile& file) {
  const OIIO::ImageSpec spec = file.input->spec();
  Header header{.width = spec.width,
                .height = spec.height,
                .depth = spec.depth,
                .channels = spec.nchannels,
                .deep = spec.deep,
                .samples = samples_of(spec.format),
                .samples_name = spec.format.c_str(),
                .channel_names = spec.channelnames,
                .straight_alpha = straight_alpha(spec),
                .bytes = spec.image_bytes(true),
                .metadata = metadata_of(file)};
  for (int channel = 0; channel < spec.nchannels; ++channel)
    header.channel_samples.push_back(samples_of(spec.channelformat(channel)));
  return header;
}

/// Converts rows from the file's own samples, channel by channel where they differ.
bool convert_rows(const OIIO::ImageSpec& spec, int first_channel, int end_channel, int rows,
                  const std::byte* from, OIIO::TypeDesc type, std::byte* to) {
  const int channels = end_channel - first_channel;
  if (spec.channelformats.empty())
    return OIIO::convert_pixel_values(spec.format, from, type, to, spec.width * rows * channels);
  const auto from_pixel = static_cast<OIIO::stride_t>(spec.pixel_bytes(first_channel, end_channel, true));
  const auto to_pixel = static_cast<OIIO::stride_t>(type.size()) * channels;
  for (int channel = first_channel; channel < end_channel; ++channel) {
    const OIIO::TypeDesc own = spec.channelformats[static_cast<std::size_t>(channel)];
    if (!OIIO::convert_image(1, spec.width, rows, 1, from, own, from_pixel, OIIO::AutoStride,
                             OIIO::AutoStride, to, type, to_pixel, OIIO::AutoStride, OIIO::AutoStride))
      return false;
    from += own.size();
    to += type.size();
  }
  return true;
}

/// As read_image, of a file without tiles: that takes 64 MiB for every picture that it converts.
bool read_rows(OpenFile& file, int first_channel, int end_channel, OIIO::TypeDesc type, std::byte* pixels) {
  constexpr int kBandBytes = 1 << 20;
  const OIIO::ImageSpec spec = file.input->spec();
  const std::size_t native_bytes =
      static_cast<std::size_t>(spec.width) * spec.pixel_bytes(first_channel, end_channel, true);
  const std::size_t row_bytes =
      static_cast<std::size_t>(spec.width * (end_channel - first_channel)) * type.size();
  // Whole strips of a TIFF, which are decompressed at once.
  const int strip = std::max(1, spec.get_int_attribute("tiff:RowsPerStrip", 64));
  const auto band = static_cast<int>(kBandBytes / (native_bytes + 1));
  const int rows = std::min(spec.height, std::max(1, band / strip) * strip);
  const bool as_stored = type == spec.format && spec.channelformats.empty();
  std::vector<std::byte> native(as_stored ? 0 : native_bytes * static_cast<std::size_t>(rows));
  for (int row = 0; row < spec.height; row += rows) {
    const int count = std::min(rows, spec.height - row);
    const int y = spec.y + row;
    std::byte* const to = pixels + row_bytes * static_cast<std::size_t>(row);
    if (!file.input->read_native_scanlines(file.picture, 0, y, y + count, 0, first_channel, end_channel,
                                           as_stored ? to : native.data()))
      return false;
    if (!as_stored && !convert_rows(spec, first_channel, end_channel, count, native.data(), type, to))
      return false;
  }
  return true;
}

std::string read_as_stored(OpenFile& file, int first_channel, int end_channel, Samples samples,
                           void* pixels) {
  const OIIO::ImageSpec& spec = file.input->spec();
  const bool complete =
      spec.tile_width == 0 && spec.depth <= 1
          ? read_rows(file, first_channel, end_channel, type_of(samples), static_cast<std::byte*>(pixels))
          : file.input->read_image(file.picture, 0, first_channel, end_channel, type_of(samples), pixels);
  // Readers that patch up what is missing say so in an error beside their success.
  if (complete && !file.input->has_error()) return {};
  return reason(file.input->geterror());
}

std::string read(OpenFile& file, int first_channel, int end_channel, Samples samples, void* pixels) {
  const OIIO::ImageSpec spec = file.input->spec();
  const int alpha = straight_alpha(spec);
  if (file.colours == AlphaColours::kAsStored || alpha < 0)
    return read_as_stored(file, first_channel, end_channel, samples, pixels);
  const auto count = static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height);
  const bool all = first_channel == 0 && end_channel == spec.nchannels;
  const std::size_t pixel = static_cast<std::size_t>(spec.nchannels) * bytes_of(samples);
  std::vector<std::byte> own(all ? 0 : count * pixel);
  void* const target = all ? pixels : own.data();
  std::string problem = read_as_stored(file, 0, spec.nchannels, samples, target);
  if (!problem.empty()) return problem;
  multiply_by_alpha(samples, target, count, spec.nchannels, alpha);
  const std::size_t kept = static_cast<std::size_t>(end_channel - first_channel) * bytes_of(samples);
  for (std::size_t i = 0; !all && i < count; ++i) {
    std::copy_n(own.data() + i * pixel + static_cast<std::size_t>(first_channel) * bytes_of(samples), kept,
                static_cast<std::byte*>(pixels) + i * kept);
  }
  return {};
}

/// A format without the samples that are asked for takes others, and integers of 32 and 64 bits, which
/// OpenImageIO takes for shares of their largest, would become zeros.
bool narrows(OIIO::TypeDesc asked, OIIO::TypeDesc taken) {
  return taken != asked && !asked.is_floating_point() && asked.basesize() >= 4;
}

std::string format_of(const std::string& path) {
  const auto output = create_output(path);
  return output == nullptr ? "" : output->format_name();
}

/// Gives the file what its format has a place for.
void put_metadata(const Metadata& metadata, const OIIO::ImageOutput& output, OIIO::ImageSpec& spec) {
  if (!metadata.compression.empty()) spec.attribute("compression", metadata.compression);
  if (metadata.data.width == spec.width && metadata.data.height == spec.height &&
      output.supports("displaywindow") != 0) {
    spec.x = metadata.data.x;
    spec.y = metadata.data.y;
    spec.full_x = metadata.display.x;
    spec.full_y = metadata.display.y;
    spec.full_width = metadata.display.width;
    spec.full_height = metadata.display.height;
  }
  if (metadata.format != output.format_name()) return;
  for (const Attribute& attribute : metadata.attributes) {
    const OIIO::TypeDesc type(attribute.type);
    if (type == OIIO::TypeString) {
      spec.attribute(attribute.name, attribute.value);
    } else if (type.size() == attribute.value.size()) {
      spec.attribute(attribute.name, type, attribute.value.data());
    }
  }
}

OIIO::ImageSpec spec_of(const Picture& picture, const OIIO::ImageOutput& output) {
  const bool alike = std::all_of(picture.stored.begin(), picture.stored.end(),
                                 [&](Samples samples) { return samples == picture.stored.front(); });
  const Samples stored = picture.stored.empty() ? picture.samples
                         : alike                ? picture.stored.front()
                                                : Samples::kFloat32;
  OIIO::ImageSpec spec(picture.width, picture.height, picture.channels, type_of(stored));
  if (!picture.channel_names.empty()) spec.channelnames = picture.channel_names;
  if (picture.metadata != nullptr) put_metadata(*picture.metadata, output, spec);
  if (picture.colours == AlphaColours::kAsStored) spec.attribute(kStraightAlpha, 1);
  return spec;
}

std::string write(const std::string& path, const Picture& picture, const WriteBytes& write_bytes) {
  ByteWriter writer(write_bytes);
  const auto output = create_output(path);  // after the writer, which it uses to its end
  if (output == nullptr) return "no image format has such a name";
  const OIIO::ImageSpec spec = spec_of(picture, *output);
  output->set_ioproxy(&writer);
  const bool open = output->open(path, spec);
  const OIIO::TypeDesc taken = output->spec().format;
  // A file of straight colours that was multiplied when it was read gets them back.
  const bool divides = picture.colours == AlphaColours::kMultiplied && straight_alpha(spec) >= 0;
  std::vector<std::byte> buffer;
  const void* pixels = picture.pixels;
  Samples samples = picture.samples;
  if (divides) {
    pixels = stored_pixels(picture, Samples::kFloat32, spec.alpha_channel, buffer);
    samples = Samples::kFloat32;
  }
  if (!open || !output->write_image(type_of(samples), pixels) || !output->close())
    return reason(output->geterror());
  // Said at the end, as libpng complains by itself of a file that is left empty.
  if (narrows(spec.format, taken))
    return "its format has no integers of " + std::to_string(8 * spec.format.basesize()) + " bits";
  return {};
}

constexpr ImageLibrary kLibrary = {
    .keep_to_one_thread = keep_openimageio_to_one_thread,
    .reads_from_memory = reads_from_memory,
    .open_memory = open_memory,
    .open_path = open_path,
    .select_picture = select_picture,
    .header = header,
    .read = read,
    .format_of = format_of,
    .write = write,
};

}  // namespace
}  // namespace cumulus::images

extern "C" const cumulus::images::ImageLibrary* cumulus_image_library_2();
extern "C" const cumulus::images::ImageLibrary* cumulus_image_library_2() {
  return &cumulus::images::kLibrary;
}

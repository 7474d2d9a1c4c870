// Reads OpenEXR files by OpenEXR's own library.
#include <ImfChannelList.h>
#include <ImfChromaticitiesAttribute.h>
#include <ImfFrameBuffer.h>
#include <ImfHeader.h>
#include <ImfIO.h>
#include <ImfInputPart.h>
#include <ImfMultiPartInputFile.h>
#include <ImfPartType.h>
#include <ImfRgbaFile.h>
#include <ImfStandardAttributes.h>
#include <ImfTileDescriptionAttribute.h>
#include <ImfVersion.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "images/exr.h"
#include "images/own_formats.h"
#include "images/samples.h"

namespace cumulus::images {
namespace {

class MemoryStream final : public Imf::IStream {
 public:
  explicit MemoryStream(std::string_view file) : IStream("the file"), file_(file) {}

  bool isMemoryMapped() const override { return true; }
  char* readMemoryMapped(int count) override {
    const char* const at = take(count);
    return const_cast<char*>(
        at);  // NOLINT(cppcoreguidelines-pro-type-const-cast): OpenEXR does not write there
  }
  bool read(char* bytes, int count) override {
    std::memcpy(bytes, take(count), static_cast<std::size_t>(count));
    return place_ < file_.size();
  }
  std::uint64_t tellg() override { return place_; }
  void seekg(std::uint64_t place) override { place_ = place; }

 private:
  const char* take(int count) {
    if (count < 0 || place_ > file_.size() || file_.size() - place_ < static_cast<std::uint64_t>(count))
      throw std::runtime_error("unexpected end of file");
    const char* const at = file_.data() + place_;
    place_ += static_cast<std::uint64_t>(count);
    return at;
  }

  const std::string_view file_;
  std::uint64_t place_ = 0;
};

/// Collects what an attribute writes.
class TextStream final : public Imf::OStream {
 public:
  TextStream() : OStream("an attribute") {}
  void write(const char* bytes, int count) override { text_.append(bytes, static_cast<std::size_t>(count)); }
  std::uint64_t tellp() override { return text_.size(); }
  void seekp(std::uint64_t /*place*/) override { throw std::logic_error("attributes are written in one go"); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

Samples samples_of(Imf::PixelType type) {
  return type == Imf::HALF ? Samples::kFloat16 : type == Imf::UINT ? Samples::kUint32 : Samples::kFloat32;
}

/// That holds all of `kinds`.
Samples widest(const std::vector<Samples>& kinds) {
  if (kinds.empty()) return Samples::kOther;
  const bool alike =
      std::all_of(kinds.begin(), kinds.end(), [&](Samples kind) { return kind == kinds.front(); });
  return alike ? kinds.front() : Samples::kFloat32;
}

const char* name_of(Samples samples) {
  return samples == Samples::kFloat16 ? "half" : samples == Samples::kUint32 ? "uint" : "float";
}

Window window_of(const Imath::Box2i& box) {
  return {box.min.x, box.min.y, box.max.x - box.min.x + 1, box.max.y - box.min.y + 1};
}

class ExrReader final : public PictureReader {
 public:
  explicit ExrReader(std::string_view file) : bytes_(file), stream_(file), file_(stream_) { choose(0); }

  bool select(int picture) override {
    if (picture >= file_.parts()) return false;
    choose(picture);
    return true;
  }
  Header header() const override { return header_; }
  Samples nearest(Samples wanted) const override {
    if (subsampled_) return Samples::kFloat16;
    return wanted == Samples::kFloat16 || wanted == Samples::kUint32 ? wanted : Samples::kFloat32;
  }

  void read(int first, int end, Samples samples, void* pixels) override {
    if (subsampled_) return read_subsampled(first, end, static_cast<char*>(pixels));
    const auto channels = static_cast<std::size_t>(end - first);
    const std::size_t sample = bytes_of(samples);
    const std::size_t row = static_cast<std::size_t>(header_.width) * channels * sample;
    const Window& window = header_.metadata.data;
    // Where the pixel (0, 0) would lie.
    char* const origin =
        static_cast<char*>(pixels) -
        static_cast<std::ptrdiff_t>(window.y) * static_cast<std::ptrdiff_t>(row) -
        static_cast<std::ptrdiff_t>(window.x) * static_cast<std::ptrdiff_t>(channels * sample);
    const Imf::PixelType type = samples == Samples::kFloat16  ? Imf::HALF
                                : samples == Samples::kUint32 ? Imf::UINT
                                                              : Imf::FLOAT;
    Imf::FrameBuffer buffer;
    for (int channel = first; channel < end; ++channel) {
      buffer.insert(header_.channel_names[static_cast<std::size_t>(channel)],
                    Imf::Slice(type, origin + static_cast<std::size_t>(channel - first) * sample,
                               channels * sample, row));
    }
    Imf::InputPart part(file_, part_);
    part.setFrameBuffer(buffer);
    part.readPixels(window.y, window.y + window.height - 1);
  }

 private:
  void choose(int part) {
    part_ = part;
    const Imf::Header& header = file_.header(part);
    header_ = {};
    header_.depth = 1;
    header_.deep = header.hasType() && Imf::isDeepData(header.type());
    header_.metadata.data = window_of(header.dataWindow());
    header_.metadata.display = window_of(header.displayWindow());
    header_.width = header_.metadata.data.width;
    header_.height = header_.metadata.data.height;
    list_channels(header.channels());
    header_.samples = widest(header_.channel_samples);
    header_.samples_name = name_of(header_.samples);
    header_.bytes = bytes_in_file();
    describe(header);
  }

  void list_channels(const Imf::ChannelList& list) {
    subsampled_ = false;
    std::vector<std::pair<std::string, Samples>> channels;
    for (auto channel = list.begin(); channel != list.end(); ++channel) {
      channels.emplace_back(channel.name(), samples_of(channel.channel().type));
      subsampled_ = subsampled_ || channel.channel().xSampling != 1 || channel.channel().ySampling != 1;
    }
    if (subsampled_) {
      channels = {{"R", Samples::kFloat16}, {"G", Samples::kFloat16}, {"B", Samples::kFloat16}};
      if (list.findChannel("A") != nullptr) channels.emplace_back("A", Samples::kFloat16);
    }
    std::stable_sort(channels.begin(), channels.end(),
                     [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
    for (const auto& [name, samples] : channels) {
      header_.channel_names.push_back(name);
      header_.channel_samples.push_back(samples);
    }
    header_.channels = static_cast<int>(channels.size());
  }

  std::size_t bytes_in_file() const {
    std::size_t pixel = 0;
    for (const Samples samples : header_.channel_samples) pixel += bytes_of(samples);
    return static_cast<std::size_t>(std::max(header_.width, 0)) *
           static_cast<std::size_t>(std::max(header_.height, 0)) * pixel;
  }

  void describe(const Imf::Header& header) {
    Metadata& metadata = header_.metadata;
    metadata.format = "openexr";
    metadata.compression = compression_name(header.compression());
    metadata.has_levels = header.hasTileDescription() && header.tileDescription().mode != Imf::ONE_LEVEL;
    for (int part = 0; part < file_.parts(); ++part) {
      const Imf::Header& other = file_.header(part);
      metadata.parts.push_back(other.hasName() ? other.name() : "");
    }
    if (Imf::hasChromaticities(header)) {
      const Imf::Chromaticities& c = Imf::chromaticities(header);
      metadata.chromaticities = {c.red.x,  c.red.y,  c.green.x, c.green.y,
                                 c.blue.x, c.blue.y, c.white.x, c.white.y};
    }
    for (auto attribute = header.begin(); attribute != header.end(); ++attribute) {
      if (has_a_field(attribute.name())) continue;
      TextStream value;
      attribute.attribute().writeValueTo(value, Imf::EXR_VERSION);
      metadata.attributes.push_back({attribute.name(), attribute.attribute().typeName(), value.take()});
    }
  }

  /// Luminance and chroma, as colours.
  void read_subsampled(int first, int end, char* pixels) {
    if (part_ != 0) throw std::runtime_error("its luminance and chroma are not in the first picture");
    MemoryStream stream(bytes_);
    Imf::RgbaInputFile file(stream);
    const Window& window = header_.metadata.data;
    const auto width = static_cast<std::size_t>(header_.width);
    std::vector<Imf::Rgba> row(width);
    const auto channels = static_cast<std::size_t>(end - first);
    for (int y = 0; y < header_.height; ++y) {
      file.setFrameBuffer(row.data() - window.x, 1, 0);
      file.readPixels(window.y + y);
      for (std::size_t x = 0; x < width; ++x) {
        std::memcpy(pixels,
                    reinterpret_cast<const char*>(&row[x]) + static_cast<std::size_t>(first) * sizeof(half),
                    channels * sizeof(half));
        pixels += channels * sizeof(half);
      }
    }
  }

  const std::string_view bytes_;
  MemoryStream stream_;
  Imf::MultiPartInputFile file_;
  int part_ = 0;
  bool subsampled_ = false;  // luminance and chroma rather than colours
  Header header_;
};

}  // namespace

std::unique_ptr<PictureReader> open_exr(std::string_view file) {
  use_all_threads();
  return std::make_unique<ExrReader>(file);
}

}  // namespace cumulus::images

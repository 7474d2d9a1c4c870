// Writes OpenEXR files by OpenEXR's own library.
#include <ImfChannelList.h>
#include <ImfChromaticitiesAttribute.h>
#include <ImfFloatAttribute.h>
#include <ImfFrameBuffer.h>
#include <ImfHeader.h>
#include <ImfIO.h>
#include <ImfOpaqueAttribute.h>
#include <ImfOutputFile.h>
#include <ImfStandardAttributes.h>
#include <ImfTileDescriptionAttribute.h>
#include <ImfTiledOutputFile.h>
#include <ImfVersion.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "images/exr.h"
#include "images/own_formats.h"
#include "images/samples.h"

namespace cumulus::images {
namespace {

class SinkStream final : public Imf::OStream {
 public:
  explicit SinkStream(ByteSink& sink) : OStream("the file"), sink_(sink) {}
  void write(const char* bytes, int count) override { sink_.write({bytes, static_cast<std::size_t>(count)}); }
  std::uint64_t tellp() override { return static_cast<std::uint64_t>(sink_.place()); }
  void seekp(std::uint64_t place) override { sink_.seek(static_cast<std::int64_t>(place)); }

 private:
  ByteSink& sink_;
};

/// An attribute's value, to be read.
class ValueStream final : public Imf::IStream {
 public:
  explicit ValueStream(const std::string& value) : IStream("an attribute"), value_(value) {}
  bool read(char* bytes, int count) override {
    if (count < 0 || value_.size() - place_ < static_cast<std::size_t>(count))
      throw std::runtime_error("an attribute ends early");
    std::memcpy(bytes, value_.data() + place_, static_cast<std::size_t>(count));
    place_ += static_cast<std::size_t>(count);
    return place_ < value_.size();
  }
  std::uint64_t tellg() override { return place_; }
  void seekg(std::uint64_t place) override { place_ = static_cast<std::size_t>(place); }

 private:
  const std::string& value_;
  std::size_t place_ = 0;
};

Imath::Box2i box_of(const Window& window) {
  return {{window.x, window.y}, {window.x + window.width - 1, window.y + window.height - 1}};
}

void insert(Imf::Header& header, const Attribute& attribute) {
  const std::unique_ptr<Imf::Attribute> made(Imf::Attribute::knownType(attribute.type.c_str())
                                                 ? Imf::Attribute::newAttribute(attribute.type.c_str())
                                                 : new Imf::OpaqueAttribute(attribute.type.c_str()));
  ValueStream value(attribute.value);
  made->readValueFrom(value, static_cast<int>(attribute.value.size()), Imf::EXR_VERSION);
  header.insert(attribute.name, *made);
}

/// The attribute by which a file tells its level of DWA.
constexpr const char* kDwaLevel = "dwaCompressionLevel";

/// "dwaa:45", with the level of what loses something.
void set_compression(Imf::Header& header, const std::string& compression) {
  const std::size_t colon = compression.find(':');
  header.compression() = compression_named(compression.substr(0, colon));
  if (colon == std::string::npos) return;
  const float level = std::strtof(compression.c_str() + colon + 1, nullptr);
  if (header.compression() == Imf::DWAA_COMPRESSION || header.compression() == Imf::DWAB_COMPRESSION) {
    header.dwaCompressionLevel() = level;
    // insert() refuses another type, and erase() of OpenEXR 3.1 leaks.
    const bool other_type = header.find(kDwaLevel) != header.end() &&
                            header.findTypedAttribute<Imf::FloatAttribute>(kDwaLevel) == nullptr;
    if (!other_type) header.insert(kDwaLevel, Imf::FloatAttribute(level));
  } else {
    header.zipCompressionLevel() = static_cast<int>(level);
  }
}

Imf::Header header_of(const Picture& picture) {
  const Window all{0, 0, picture.width, picture.height};
  const Metadata* const metadata = picture.metadata;
  const bool fits =
      metadata != nullptr && metadata->data.width == picture.width && metadata->data.height == picture.height;
  Imf::Header header(box_of(fits ? metadata->display : all), box_of(fits ? metadata->data : all));
  header.compression() = Imf::ZIP_COMPRESSION;
  if (metadata == nullptr) return header;
  if (metadata->format == "openexr") {
    for (const Attribute& attribute : metadata->attributes) insert(header, attribute);
    if (const auto* level = header.findTypedAttribute<Imf::FloatAttribute>(kDwaLevel); level != nullptr)
      header.dwaCompressionLevel() = level->value();
  }
  if (!metadata->compression.empty()) set_compression(header, metadata->compression);
  if (const auto& c = metadata->chromaticities; c.has_value()) {
    Imf::addChromaticities(header, Imf::Chromaticities({(*c)[0], (*c)[1]}, {(*c)[2], (*c)[3]},
                                                       {(*c)[4], (*c)[5]}, {(*c)[6], (*c)[7]}));
  }
  return header;
}

std::vector<std::string> names_of(const Picture& picture) {
  if (!picture.channel_names.empty()) return picture.channel_names;
  std::vector<std::string> names = {"Y", "A"};
  if (picture.channels > 2) names = {"R", "G", "B", "A"};
  for (int channel = 4; channel < picture.channels; ++channel)
    names.push_back("channel" + std::to_string(channel));
  names.resize(static_cast<std::size_t>(picture.channels));
  return names;
}

/// What OpenEXR has of `samples`.
Samples known(Samples samples) {
  if (samples == Samples::kFloat16 || samples == Samples::kUint32) return samples;
  return Samples::kFloat32;
}

Imf::PixelType type_of(Samples samples) {
  return samples == Samples::kFloat16 ? Imf::HALF : samples == Samples::kUint32 ? Imf::UINT : Imf::FLOAT;
}

/// The picture in each kind of samples that a channel is stored in.
class StoredPixels {
 public:
  explicit StoredPixels(const Picture& picture) : picture_(picture) {}
  /// Where the sample of the first pixel and channel lies.
  char* of(Samples samples) {
    auto [entry, fresh] = kinds_.try_emplace(samples);
    if (fresh) entry->second.pixels = stored_pixels(picture_, samples, -1, entry->second.buffer);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): slices are for reading and writing
    return static_cast<char*>(const_cast<void*>(entry->second.pixels));
  }

 private:
  struct Kind {
    std::vector<std::byte> buffer;
    const void* pixels = nullptr;
  };
  const Picture& picture_;
  std::map<Samples, Kind> kinds_;
};

}  // namespace

void write_exr(const Picture& picture, ByteSink& file) {
  use_all_threads();
  Imf::Header header = header_of(picture);
  const std::vector<std::string> names = names_of(picture);
  const Imath::Box2i window = header.dataWindow();
  StoredPixels stored(picture);
  Imf::FrameBuffer buffer;
  for (std::size_t channel = 0; channel < names.size(); ++channel) {
    const Samples wanted = picture.stored.empty()       ? picture.samples
                           : picture.stored.size() == 1 ? picture.stored.front()
                                                        : picture.stored[channel];
    const Samples samples = known(wanted);
    const std::size_t sample = bytes_of(samples);
    const std::size_t pixel = sample * static_cast<std::size_t>(picture.channels);
    const std::size_t row = pixel * static_cast<std::size_t>(picture.width);
    header.channels().insert(names[channel], Imf::Channel(type_of(samples)));
    char* const origin = stored.of(samples) + channel * sample -
                         static_cast<std::ptrdiff_t>(window.min.y) * static_cast<std::ptrdiff_t>(row) -
                         static_cast<std::ptrdiff_t>(window.min.x) * static_cast<std::ptrdiff_t>(pixel);
    buffer.insert(names[channel], Imf::Slice(type_of(samples), origin, pixel, row));
  }
  SinkStream stream(file);
  if (header.hasTileDescription()) {
    header.tileDescription().mode = Imf::ONE_LEVEL;
    Imf::TiledOutputFile tiles(stream, header);
    tiles.setFrameBuffer(buffer);
    tiles.writeTiles(0, tiles.numXTiles() - 1, 0, tiles.numYTiles() - 1);
  } else {
    Imf::OutputFile rows(stream, header);
    rows.setFrameBuffer(buffer);
    rows.writePixels(picture.height);
  }
}

}  // namespace cumulus::images

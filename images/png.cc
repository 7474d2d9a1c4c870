// Reads and writes PNG files by libpng.
#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "images/own_formats.h"
#include "images/samples.h"

namespace cumulus::images {
namespace {

// libpng is built with tables for unwinding, so that exceptions may leave its callbacks.
[[noreturn]] void raise_error(png_structp /*png*/, png_const_charp text) { throw std::runtime_error(text); }
void ignore(png_structp /*png*/, png_const_charp /*text*/) {}

constexpr std::size_t kSignature = 8;

/// Chunks that say something of the picture and not how it is stored, with what to call them.
struct Kept {
  const char* type;
  const char* name;
};
constexpr std::array<Kept, 10> kKept = {{{"iCCP", "ICC profile"},
                                         {"gAMA", "gamma"},
                                         {"sRGB", "sRGB intent"},
                                         {"cHRM", "chromaticities"},
                                         {"pHYs", "resolution"},
                                         {"tEXt", "text"},
                                         {"zTXt", "text"},
                                         {"iTXt", "text"},
                                         {"tIME", "time"},
                                         {"eXIf", "Exif"}}};

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

/// visit(type, data) for each chunk that is whole.
template <class Visit>
void for_each_chunk(std::string_view file, const Visit& visit) {
  file.remove_prefix(std::min(kSignature, file.size()));
  constexpr std::size_t kFrame = 12;  // length, type and checksum
  while (file.size() >= kFrame) {
    const std::size_t length = number_at(file);
    if (length > file.size() - kFrame) return;
    visit(file.substr(4, 4), file.substr(8, length));
    file.remove_prefix(kFrame + length);
  }
}

std::string name_of(std::string_view type, std::string_view data) {
  for (const Kept& kept : kKept) {
    if (type != kept.type) continue;
    const std::string name = kept.name;
    return name == "text"
               ? name + " " + std::string(data.substr(0, std::min<std::size_t>(data.find('\0'), 79)))
               : name;
  }
  return "";
}

class PngReader final : public PictureReader {
 public:
  explicit PngReader(std::string_view file) : file_(file) {
    const Opened opened(*this);
    header_.width = static_cast<int>(png_get_image_width(opened.png, opened.info));
    header_.height = static_cast<int>(png_get_image_height(opened.png, opened.info));
    header_.depth = 1;
    header_.channels = png_get_channels(opened.png, opened.info);
    const bool wide = png_get_bit_depth(opened.png, opened.info) == 16;
    header_.samples = wide ? Samples::kUint16 : Samples::kUint8;
    header_.samples_name = wide ? "uint16" : "uint8";
    const bool colours = header_.channels > 2;
    header_.channel_names =
        colours ? std::vector<std::string>{"R", "G", "B", "A"} : std::vector<std::string>{"Y", "A"};
    header_.channel_names.resize(static_cast<std::size_t>(header_.channels));
    header_.channel_samples.assign(static_cast<std::size_t>(header_.channels), header_.samples);
    if (header_.channels % 2 == 0) header_.straight_alpha = header_.channels - 1;
    header_.bytes = static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(header_.height) *
                    static_cast<std::size_t>(header_.channels) * bytes_of(header_.samples);
    describe();
  }

  Header header() const override { return header_; }
  Samples nearest(Samples /*wanted*/) const override { return header_.samples; }

  void read(int first, int end, Samples /*samples*/, void* pixels) override {
    const Opened opened(*this);
    const auto height = static_cast<std::size_t>(header_.height);
    const std::size_t pixel = static_cast<std::size_t>(header_.channels) * bytes_of(header_.samples);
    const std::size_t row = static_cast<std::size_t>(header_.width) * pixel;
    const std::size_t kept = static_cast<std::size_t>(end - first) * bytes_of(header_.samples);
    const bool all = kept == pixel;
    const bool interlaced = png_get_interlace_type(opened.png, opened.info) != PNG_INTERLACE_NONE;
    std::vector<png_byte> own(all ? 0 : (interlaced ? height : 1) * row);
    const auto row_at = [&](std::size_t y) {
      return all ? static_cast<png_bytep>(pixels) + y * row : own.data() + (interlaced ? y * row : 0);
    };
    const auto keep = [&](std::size_t y) {
      if (all) return;
      for (std::size_t x = 0; x < static_cast<std::size_t>(header_.width); ++x) {
        std::memcpy(static_cast<png_bytep>(pixels) + (y * static_cast<std::size_t>(header_.width) + x) * kept,
                    row_at(y) + x * pixel + static_cast<std::size_t>(first) * bytes_of(header_.samples),
                    kept);
      }
    };
    const int passes = png_set_interlace_handling(opened.png);
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t y = 0; y < height; ++y) {
        png_read_row(opened.png, row_at(y), nullptr);
        if (!interlaced) keep(y);
      }
    }
    for (std::size_t y = 0; interlaced && y < height; ++y) keep(y);
    png_read_end(opened.png, nullptr);
  }

 private:
  /// libpng's state behind the header, with the samples made 8 or 16 bits of grey or colour.
  struct Opened {
    explicit Opened(PngReader& reader)
        : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, raise_error, ignore)),
          info(png != nullptr ? png_create_info_struct(png) : nullptr) {
      if (info == nullptr) throw std::bad_alloc();
      try {
        prepare(reader);
      } catch (...) {
        png_destroy_read_struct(&png, &info, nullptr);
        throw;
      }
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() { png_destroy_read_struct(&png, &info, nullptr); }

    void prepare(PngReader& reader) const {
      reader.place_ = 0;
      png_set_read_fn(png, &reader, [](png_structp reading, png_bytep bytes, std::size_t count) {
        auto* const from = static_cast<PngReader*>(png_get_io_ptr(reading));
        if (count > from->file_.size() - from->place_) throw std::runtime_error("unexpected end of file");
        std::memcpy(bytes, from->file_.data() + from->place_, count);
        from->place_ += count;
      });
      png_set_user_limits(png, 0x7fffffff, 0x7fffffff);
      // What describe() takes from the file itself, libpng has not to parse.
      png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
      png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER,
                                  reinterpret_cast<png_const_bytep>("iCCP\0tEXt\0zTXt\0iTXt\0eXIf"), 5);
      png_read_info(png, info);
      const png_byte type = png_get_color_type(png, info);
      if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
      if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
      if (png_get_valid(png, info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
      if (png_get_bit_depth(png, info) == 16) png_set_swap(png);
      (void)png_set_interlace_handling(png);
      png_read_update_info(png, info);
    }

    png_structp png;
    png_infop info;
  };

  void describe() {
    Metadata& metadata = header_.metadata;
    metadata.format = "png";
    metadata.data = metadata.display = {0, 0, header_.width, header_.height};
    metadata.parts = {""};
    for_each_chunk(file_, [&](std::string_view type, std::string_view data) {
      const std::string name = name_of(type, data);
      if (name.empty()) return;
      std::string value(data);
      if (type == "eXIf") {
        metadata.orientation = exif_orientation(data);
        value = upright_exif(value);
      }
      if (type == "cHRM" && data.size() == 32) {
        std::array<float, 8> numbers{};  // white comes first in the file
        for (std::size_t i = 0; i < 8; ++i)
          numbers[(i + 6) % 8] = static_cast<float>(number_at(data.substr(4 * i))) / 100000.0F;
        metadata.chromaticities = numbers;
        return;
      }
      metadata.attributes.push_back({name, std::string(type), value});
    });
  }

  const std::string_view file_;
  std::size_t place_ = 0;
  Header header_;
};

/// libpng's state of a file that is being written.
struct PngWriting {
  explicit PngWriting(ByteSink& file)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, raise_error, ignore)),
        info(png != nullptr ? png_create_info_struct(png) : nullptr) {
    if (info == nullptr) throw std::bad_alloc();
    png_set_write_fn(
        png, &file,
        [](png_structp writing, png_bytep bytes, std::size_t count) {
          static_cast<ByteSink*>(png_get_io_ptr(writing))
              ->write({reinterpret_cast<const char*>(bytes), count});
        },
        [](png_structp) {});
  }
  PngWriting(const PngWriting&) = delete;
  PngWriting& operator=(const PngWriting&) = delete;
  ~PngWriting() { png_destroy_write_struct(&png, &info); }

  png_structp png;
  png_infop info;
};

void put_metadata(const PngWriting& writing, const Metadata& metadata) {
  if (metadata.chromaticities.has_value()) {
    std::array<double, 8> c{};
    std::copy(metadata.chromaticities->begin(), metadata.chromaticities->end(), c.begin());
    png_set_cHRM(writing.png, writing.info, c[6], c[7], c[0], c[1], c[2], c[3], c[4], c[5]);
  }
  png_write_info(writing.png, writing.info);
  if (metadata.format != "png") return;
  for (const Attribute& attribute : metadata.attributes) {
    png_write_chunk(writing.png, reinterpret_cast<png_const_bytep>(attribute.type.c_str()),
                    reinterpret_cast<png_const_bytep>(attribute.value.data()), attribute.value.size());
  }
}

/// "png:9", of 0 to 9, fast to small.
void set_level(png_structp png, const std::string& compression) {
  if (compression.empty()) return;
  const bool level = compression.size() == 5 && compression.rfind("png:", 0) == 0 && compression[4] >= '0' &&
                     compression[4] <= '9';
  if (!level)
    throw std::invalid_argument("PNG has no compression '" + compression + "'; png:0 to png:9 is right");
  png_set_compression_level(png, compression[4] - '0');
}

}  // namespace

std::unique_ptr<PictureReader> open_png(std::string_view file) { return std::make_unique<PngReader>(file); }

void write_png(const Picture& picture, ByteSink& file) {
  if (picture.channels > 4)
    throw std::runtime_error("PNG has at most 4 channels, and this picture has " +
                             std::to_string(picture.channels));
  const Samples samples = stored_as(picture, {Samples::kUint8, Samples::kUint16});
  const Samples asked = picture.stored.empty() ? picture.samples : picture.stored.front();
  if (!is_floating(asked) && bytes_of(asked) >= 4)
    throw std::runtime_error("its format has no integers of " + std::to_string(8 * bytes_of(asked)) +
                             " bits");
  std::vector<std::byte> buffer;
  const int alpha = picture.channels % 2 == 0 ? picture.channels - 1 : -1;
  const auto* const pixels = static_cast<const png_byte*>(stored_pixels(picture, samples, alpha, buffer));
  const PngWriting writing(file);
  constexpr std::array kColours = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_user_limits(writing.png, 0x7fffffff, 0x7fffffff);
  png_set_IHDR(writing.png, writing.info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), samples == Samples::kUint16 ? 16 : 8,
               kColours[static_cast<std::size_t>(picture.channels - 1)], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (picture.metadata != nullptr) {
    set_level(writing.png, picture.metadata->compression);
    put_metadata(writing, *picture.metadata);
  } else {
    png_write_info(writing.png, writing.info);
  }
  if (samples == Samples::kUint16) png_set_swap(writing.png);
  const std::size_t row = static_cast<std::size_t>(picture.width) *
                          static_cast<std::size_t>(picture.channels) * bytes_of(samples);
  for (int y = 0; y < picture.height; ++y)
    png_write_row(writing.png, pixels + static_cast<std::size_t>(y) * row);
  png_write_end(writing.png, nullptr);
}

}  // namespace cumulus::images

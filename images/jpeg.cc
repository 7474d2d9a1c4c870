// Reads and writes JPEG files by libjpeg.
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "images/own_formats.h"
#include "images/samples.h"

// After the standard library, whose types it uses without including them.
#include <jpeglib.h>

namespace cumulus::images {
namespace {

constexpr unsigned kLongestMarker = 0xFFFF;
constexpr std::string_view kExifStart("Exif\0\0", 6);

std::string text_of(j_common_ptr state) {
  std::array<char, JMSG_LENGTH_MAX> text{};
  (*state->err->format_message)(state, text.data());
  return text.data();
}

/// libjpeg is built with tables for unwinding, so that exceptions may leave its callbacks. What it would
/// patch up with a warning (a file that ends early) is an error.
jpeg_error_mgr* throwing(jpeg_error_mgr& errors) {
  jpeg_std_error(&errors);
  errors.error_exit = [](j_common_ptr state) { throw std::runtime_error(text_of(state)); };
  errors.emit_message = [](j_common_ptr state, int level) {
    if (level < 0) throw std::runtime_error(text_of(state));
  };
  return &errors;
}

std::string name_of(const jpeg_saved_marker_ptr marker) {
  const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
  if (marker->marker == JPEG_COM) return "comment";
  if (data.substr(0, 6) == kExifStart) return "Exif";
  if (data.substr(0, 5) == "http:") return "XMP";
  if (data.substr(0, 11) == "ICC_PROFILE") return "ICC profile";
  return marker->marker == JPEG_APP0 + 13 ? "IPTC" : "APP" + std::to_string(marker->marker - JPEG_APP0);
}

/// A file in memory whose header has been read.
struct Reading {
  explicit Reading(std::string_view file, bool keep_markers) {
    state.err = throwing(errors);
    jpeg_create_decompress(&state);
    try {
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): older versions want it so
      jpeg_mem_src(&state, reinterpret_cast<unsigned char*>(const_cast<char*>(file.data())), file.size());
      if (keep_markers) {
        jpeg_save_markers(&state, JPEG_COM, kLongestMarker);
        for (const int application : {1, 2, 13})
          jpeg_save_markers(&state, JPEG_APP0 + application, kLongestMarker);
      }
      jpeg_read_header(&state, TRUE);
    } catch (...) {
      jpeg_destroy_decompress(&state);
      throw;
    }
    // Four inks, as colours: libjpeg itself converts between YCCK and CMYK only.
    inks = state.num_components == 4;
    state.out_color_space = inks ? JCS_CMYK : state.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() { jpeg_destroy_decompress(&state); }

  jpeg_decompress_struct state{};
  jpeg_error_mgr errors{};
  bool inks = false;
};

class JpegReader final : public PictureReader {
 public:
  explicit JpegReader(std::string_view file) : file_(file) {
    const Reading reading(file, true);
    header_.width = static_cast<int>(reading.state.image_width);
    header_.height = static_cast<int>(reading.state.image_height);
    header_.depth = 1;
    header_.channels = reading.state.num_components == 1 ? 1 : 3;
    header_.samples = Samples::kUint8;
    header_.samples_name = "uint8";
    header_.channel_names =
        header_.channels == 1 ? std::vector<std::string>{"Y"} : std::vector<std::string>{"R", "G", "B"};
    header_.channel_samples.assign(header_.channel_names.size(), Samples::kUint8);
    header_.bytes = static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(header_.height) *
                    static_cast<std::size_t>(header_.channels);
    Metadata& metadata = header_.metadata;
    metadata.format = "jpeg";
    metadata.data = metadata.display = {0, 0, header_.width, header_.height};
    metadata.parts = {""};
    for (jpeg_saved_marker_ptr marker = reading.state.marker_list; marker != nullptr; marker = marker->next)
      note(marker);
  }

  Header header() const override { return header_; }
  Samples nearest(Samples /*wanted*/) const override { return Samples::kUint8; }

  void read(int first, int end, Samples /*samples*/, void* pixels) override {
    Reading reading(file_, false);
    jpeg_decompress_struct& state = reading.state;
    jpeg_start_decompress(&state);
    const auto width = static_cast<std::size_t>(header_.width);
    const auto channels = static_cast<std::size_t>(state.output_components);
    const auto kept = static_cast<std::size_t>(end - first);
    const bool all = !reading.inks && kept == channels;
    std::vector<JSAMPLE> own(all ? 0 : width * channels);
    auto* out = static_cast<JSAMPLE*>(pixels);
    while (state.output_scanline < state.output_height) {
      JSAMPROW row = all ? out : own.data();
      jpeg_read_scanlines(&state, &row, 1);
      if (reading.inks) mix(own, state.saw_Adobe_marker != 0);
      for (std::size_t x = 0; !all && x < width; ++x)
        std::memcpy(out + x * kept, own.data() + x * channels + static_cast<std::size_t>(first), kept);
      out += width * kept;
    }
    jpeg_finish_decompress(&state);
  }

 private:
  void note(const jpeg_saved_marker_ptr marker) {
    std::string value(reinterpret_cast<const char*>(marker->data), marker->data_length);
    const std::string name = name_of(marker);
    if (name == "Exif") {
      const std::string exif = value.substr(kExifStart.size());
      header_.metadata.orientation = exif_orientation(exif);
      value = std::string(kExifStart) + upright_exif(exif);
    }
    header_.metadata.attributes.push_back({name, std::to_string(marker->marker), std::move(value)});
  }

  /// Inks, which Adobe's files hold upside down, as colours in the first three of each four samples.
  static void mix(std::vector<JSAMPLE>& row, bool upside_down) {
    const auto light = [&](JSAMPLE ink) { return upside_down ? int{ink} : 255 - int{ink}; };
    for (std::size_t i = 0; i + 3 < row.size(); i += 4) {
      for (std::size_t channel = 0; channel < 3; ++channel)
        row[i + channel] = static_cast<JSAMPLE>(light(row[i + channel]) * light(row[i + 3]) / 255);
    }
  }

  const std::string_view file_;
  Header header_;
};

/// Hands what libjpeg has compressed to a sink.
struct Destination {
  explicit Destination(ByteSink& sink) : file(sink) {
    manager.init_destination = [](j_compress_ptr state) { from(state).reset(); };
    manager.empty_output_buffer = [](j_compress_ptr state) -> boolean {
      Destination& to = from(state);
      to.file.write({to.buffer.data(), to.buffer.size()});
      to.reset();
      return TRUE;
    };
    manager.term_destination = [](j_compress_ptr state) {
      Destination& to = from(state);
      to.file.write({to.buffer.data(), to.buffer.size() - to.manager.free_in_buffer});
    };
  }
  static Destination& from(j_compress_ptr state) { return *static_cast<Destination*>(state->client_data); }
  void reset() {
    manager.next_output_byte = reinterpret_cast<JOCTET*>(buffer.data());
    manager.free_in_buffer = buffer.size();
  }

  ByteSink& file;
  jpeg_destination_mgr manager{};
  std::array<char, 65536> buffer{};
};

struct JpegWriting {
  explicit JpegWriting(Destination& to) {
    state.err = throwing(errors);
    jpeg_create_compress(&state);
    state.client_data = &to;
    state.dest = &to.manager;
  }
  JpegWriting(const JpegWriting&) = delete;
  JpegWriting& operator=(const JpegWriting&) = delete;
  ~JpegWriting() { jpeg_destroy_compress(&state); }

  jpeg_compress_struct state{};
  jpeg_error_mgr errors{};
};

/// "jpeg:90", or what is near to lossless.
int quality_of(const Metadata* metadata) {
  constexpr int kNearlyLossless = 98;
  if (metadata == nullptr || metadata->compression.empty()) return kNearlyLossless;
  const std::string& text = metadata->compression;
  const int quality = text.rfind("jpeg:", 0) == 0 ? std::atoi(text.c_str() + 5) : 0;
  if (quality >= 1 && quality <= 100) return quality;
  throw std::invalid_argument("JPEG has no compression '" + text + "'; jpeg:1 to jpeg:100 is right");
}

}  // namespace

std::unique_ptr<PictureReader> open_jpeg(std::string_view file) { return std::make_unique<JpegReader>(file); }

void write_jpeg(const Picture& picture, ByteSink& file) {
  if (picture.channels != 1 && picture.channels != 3)
    throw std::runtime_error("JPEG has pictures of 1 or 3 channels, and this one has " +
                             std::to_string(picture.channels));
  std::vector<std::byte> buffer;
  const auto* pixels = static_cast<const JSAMPLE*>(stored_pixels(picture, Samples::kUint8, -1, buffer));
  Destination to(file);
  JpegWriting writing(to);
  jpeg_compress_struct& state = writing.state;
  state.image_width = static_cast<JDIMENSION>(picture.width);
  state.image_height = static_cast<JDIMENSION>(picture.height);
  state.input_components = picture.channels;
  state.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, quality_of(picture.metadata), TRUE);
  for (int component = 0; component < state.num_components; ++component) {
    state.comp_info[component].h_samp_factor = 1;  // colours of every pixel
    state.comp_info[component].v_samp_factor = 1;
  }
  jpeg_start_compress(&state, TRUE);
  if (picture.metadata != nullptr && picture.metadata->format == "jpeg") {
    for (const Attribute& marker : picture.metadata->attributes) {
      jpeg_write_marker(&state, std::atoi(marker.type.c_str()),
                        reinterpret_cast<const JOCTET*>(marker.value.data()),
                        static_cast<unsigned>(marker.value.size()));
    }
  }
  const std::size_t row =
      static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.channels);
  while (state.next_scanline < state.image_height) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): libjpeg does not write there
    JSAMPROW line = const_cast<JSAMPLE*>(pixels + state.next_scanline * row);
    jpeg_write_scanlines(&state, &line, 1);
  }
  jpeg_finish_compress(&state);
}

}  // namespace cumulus::images

// Radiance's pictures, with one exponent for the three channels of a pixel.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "images/own_formats.h"
#include "images/samples.h"

namespace cumulus::images {
namespace {

using Rgbe = std::array<std::uint8_t, 4>;

[[noreturn]] void end_early() { throw std::runtime_error("unexpected end of file"); }

/// Bytes, one after another.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::uint8_t next() {
    if (bytes_.empty()) end_early();
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  Rgbe pixel() { return {next(), next(), next(), next()}; }
  /// As pixel(), without taking it.
  Rgbe peek() const { return Bytes(*this).pixel(); }

 private:
  std::string_view bytes_;
};

void set_colour(const Rgbe& pixel, float* colour) {
  const float unit = pixel[3] == 0 ? 0.0F : std::ldexp(1.0F, pixel[3] - (128 + 8));
  for (std::size_t channel = 0; channel < 3; ++channel)
    colour[channel] = static_cast<float>(pixel[channel]) * unit;
}

Rgbe rgbe_of(const float* colour) {
  std::array<float, 3> kept{};
  for (std::size_t channel = 0; channel < 3; ++channel)
    kept[channel] = colour[channel] > 0.0F ? std::min(colour[channel], 1.7e38F) : 0.0F;  // NaN, too, is 0
  const float largest = std::max({kept[0], kept[1], kept[2]});
  if (largest < 1e-32F) return {0, 0, 0, 0};
  int exponent = 0;
  const float scale = std::frexp(largest, &exponent) * 256.0F / largest;
  Rgbe pixel{};
  for (std::size_t channel = 0; channel < 3; ++channel)
    pixel[channel] = static_cast<std::uint8_t>(std::min(kept[channel] * scale, 255.0F));
  pixel[3] = static_cast<std::uint8_t>(exponent + 128);
  return pixel;
}

/// One row of four planes, each as runs and literal bytes.
void read_planes(Bytes& bytes, std::vector<Rgbe>& row) {
  (void)bytes.pixel();
  for (std::size_t plane = 0; plane < 4; ++plane) {
    for (std::size_t x = 0; x < row.size();) {
      const std::uint8_t code = bytes.next();
      const std::size_t count = code > 128 ? code - 128 : code;
      if (count == 0 || count > row.size() - x) throw std::runtime_error("a run is longer than its row");
      const std::uint8_t repeated = code > 128 ? bytes.next() : 0;
      for (std::size_t i = 0; i < count; ++i) row[x++][plane] = code > 128 ? repeated : bytes.next();
    }
  }
}

/// Pixels, with counts of repetitions as Radiance wrote them first.
void read_flat(Bytes& bytes, std::vector<Rgbe>& row) {
  int shift = 0;
  for (std::size_t x = 0; x < row.size();) {
    const Rgbe pixel = bytes.pixel();
    if (pixel[0] != 1 || pixel[1] != 1 || pixel[2] != 1 || x == 0) {
      row[x++] = pixel;
      shift = 0;
      continue;
    }
    const std::size_t count = shift < 32 ? std::size_t{pixel[3]} << shift : row.size() + 1;
    if (count > row.size() - x) throw std::runtime_error("a run is longer than its row");
    std::fill_n(row.begin() + static_cast<std::ptrdiff_t>(x), count, row[x - 1]);
    x += count;
    shift += 8;
  }
}

/// "-Y 512 +X 1024": which axis is the outer one, and which way they run.
struct Layout {
  bool transposed = false;
  std::array<char, 2> signs{};
  std::array<int, 2> extents{};
};

int orientation_of(const Layout& layout) {
  const bool down = layout.signs[0] == '-';
  const bool right = layout.signs[1] == '+';
  if (!layout.transposed) return down ? (right ? 1 : 2) : (right ? 4 : 3);
  // The outer axis is x: its + runs to the right. The inner one is y: its - runs down.
  return layout.signs[0] == '+' ? (layout.signs[1] == '-' ? 5 : 8) : (layout.signs[1] == '-' ? 6 : 7);
}

Layout layout_of(std::string_view line) {
  Layout layout;
  std::array<char, 2> axes{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.size() < 3 || (line[0] != '-' && line[0] != '+'))
      throw std::runtime_error("its size is not said");
    layout.signs[axis] = line[0];
    axes[axis] = line[1];
    line.remove_prefix(std::min(line.find_first_not_of(' ', 2), line.size()));
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), layout.extents[axis]);
    if (error != std::errc()) throw std::runtime_error("its size is not said");
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  layout.transposed = axes[0] == 'X' && axes[1] == 'Y';
  if (!layout.transposed && (axes[0] != 'Y' || axes[1] != 'X'))
    throw std::runtime_error("its size is not said");
  return layout;
}

class HdrReader final : public PictureReader {
 public:
  explicit HdrReader(std::string_view file) {
    std::string_view rest = file;
    const auto line = [&rest] {
      const std::size_t end = rest.find('\n');
      if (end == std::string_view::npos) end_early();
      const std::string_view taken = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      return taken;
    };
    Metadata& metadata = header_.metadata;
    metadata.format = "hdr";
    for (std::string_view said = line(); !said.empty(); said = line()) note(said);
    const Layout layout = layout_of(line());
    metadata.orientation = orientation_of(layout);
    header_.width = layout.extents[1];
    header_.height = layout.extents[0];
    if (header_.width < 1 || header_.height < 1) throw std::runtime_error("it has no pixels");
    header_.depth = 1;
    header_.channels = 3;
    header_.samples = Samples::kFloat32;
    header_.samples_name = "float";
    header_.channel_names = {"R", "G", "B"};
    header_.channel_samples = {Samples::kFloat32, Samples::kFloat32, Samples::kFloat32};
    header_.bytes = static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(header_.height) * 3 *
                    sizeof(float);
    metadata.data = metadata.display = {0, 0, header_.width, header_.height};
    metadata.parts = {""};
    pixels_ = rest;
  }

  Header header() const override { return header_; }
  Samples nearest(Samples /*wanted*/) const override { return Samples::kFloat32; }

  void read(int first, int end, Samples /*samples*/, void* pixels) override {
    Bytes bytes(pixels_);
    std::vector<Rgbe> row(static_cast<std::size_t>(header_.width));
    auto* out = static_cast<float*>(pixels);
    for (int y = 0; y < header_.height; ++y) {
      const Rgbe start = bytes.peek();
      const bool planes = start[0] == 2 && start[1] == 2 && row.size() >= 8 && row.size() < 32768 &&
                          static_cast<std::size_t>(start[2] << 8 | start[3]) == row.size();
      planes ? read_planes(bytes, row) : read_flat(bytes, row);
      for (const Rgbe& pixel : row) {
        std::array<float, 3> colour{};
        set_colour(pixel, colour.data());
        for (int channel = first; channel < end; ++channel)
          *out++ = colour[static_cast<std::size_t>(channel)];
      }
    }
  }

 private:
  void note(std::string_view line) {
    if (line.substr(0, 2) == "#?") return;
    if (line.substr(0, 7) == "FORMAT=") {
      if (line.find("32-bit_rle_rgbe") == std::string_view::npos)
        throw std::runtime_error("its pixels are " + std::string(line.substr(7)) +
                                 ", and only 32-bit_rle_rgbe is read");
      return;
    }
    Metadata& metadata = header_.metadata;
    if (line.substr(0, 10) == "PRIMARIES=" && read_primaries(line.substr(10))) return;
    const std::size_t equals = line.find('=');
    const std::string name(line.substr(0, std::min(equals, std::size_t{32})));
    metadata.attributes.push_back({name, "line", std::string(line)});
  }

  bool read_primaries(std::string_view text) {
    std::array<float, 8> numbers{};
    for (float& number : numbers) {
      text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc()) return false;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    header_.metadata.chromaticities = numbers;
    return true;
  }

  Header header_;
  std::string_view pixels_;
};

/// A plane's bytes as runs of four and more, and literal bytes.
void append_runs(const std::vector<std::uint8_t>& bytes, std::string& out) {
  constexpr std::size_t kLeastRun = 4;
  constexpr std::size_t kMostRun = 127;
  constexpr std::size_t kMostLiteral = 128;
  const auto run_at = [&](std::size_t at) {
    std::size_t end = at + 1;
    while (end < bytes.size() && end - at < kMostRun && bytes[end] == bytes[at]) ++end;
    return end - at;
  };
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t run = run_at(at);
    if (run >= kLeastRun) {
      out += static_cast<char>(128 + run);
      out += static_cast<char>(bytes[at]);
      at += run;
      continue;
    }
    std::size_t end = at + run;
    while (end < bytes.size() && end - at < kMostLiteral && run_at(end) < kLeastRun) ++end;
    out += static_cast<char>(end - at);
    out.append(reinterpret_cast<const char*>(bytes.data() + at), end - at);
    at = end;
  }
}

std::string header_text(const Picture& picture) {
  std::string text = "#?RADIANCE\n";
  const Metadata* const metadata = picture.metadata;
  if (metadata != nullptr && metadata->format == "hdr") {
    for (const Attribute& attribute : metadata->attributes) text += attribute.value + "\n";
  }
  if (metadata != nullptr && metadata->chromaticities.has_value()) {
    text += "PRIMARIES=";
    for (const float number : *metadata->chromaticities) {
      std::array<char, 32> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
      text += std::string(text.back() == '=' ? "" : " ") + std::string(digits.data(), end);
    }
    text += "\n";
  }
  return text + "FORMAT=32-bit_rle_rgbe\n\n-Y " + std::to_string(picture.height) + " +X " +
         std::to_string(picture.width) + "\n";
}

}  // namespace

std::unique_ptr<PictureReader> open_hdr(std::string_view file) { return std::make_unique<HdrReader>(file); }

void write_hdr(const Picture& picture, ByteSink& file) {
  if (picture.channels != 3)
    throw std::runtime_error("HDR has pictures of 3 channels, and this one has " +
                             std::to_string(picture.channels));
  if (picture.metadata != nullptr && !picture.metadata->compression.empty())
    throw std::runtime_error("HDR has one compression, and none to choose");
  std::vector<std::byte> buffer;
  const auto* floats = static_cast<const float*>(stored_pixels(picture, Samples::kFloat32, -1, buffer));
  file.write(header_text(picture));
  const auto width = static_cast<std::size_t>(picture.width);
  std::vector<std::uint8_t> plane(width);
  std::vector<Rgbe> row(width);
  for (int y = 0; y < picture.height; ++y) {
    for (Rgbe& pixel : row) {
      pixel = rgbe_of(floats);
      floats += 3;
    }
    std::string bytes;
    if (width < 8 || width >= 32768) {
      bytes.assign(reinterpret_cast<const char*>(row.data()), width * sizeof(Rgbe));
    } else {
      bytes = {2, 2, static_cast<char>(width >> 8), static_cast<char>(width & 255)};
      for (std::size_t channel = 0; channel < 4; ++channel) {
        for (std::size_t x = 0; x < width; ++x) plane[x] = row[x][channel];
        append_runs(plane, bytes);
      }
    }
    file.write(bytes);
  }
}

}  // namespace cumulus::images

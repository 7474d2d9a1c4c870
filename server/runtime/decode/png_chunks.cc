#include "server/runtime/decode/png_chunks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

namespace cumulus::server {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kFrameBytes = 12;  // of a chunk: its data's length, its type, its checksum
constexpr std::size_t kHeaderDataBytes = 13;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

/// Those of the chunks that a decoder may do without which change pixels: transparency, and the gamma that
/// colours are multiplied by alpha with. Once each.
bool changes_pixels(std::string_view type) {
  constexpr std::array<std::string_view, 3> kTypes = {"tRNS", "gAMA", "sRGB"};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

/// The case of the first letter says so.
bool is_critical(std::string_view type) { return type[0] >= 'A' && type[0] <= 'Z'; }

std::optional<PngChunks::Size> parse_header(std::string_view data) {
  constexpr std::array<int, 7> kChannels = {1, 0, 3, 3, 2, 0, 4};  // by colour type; 3 is a palette
  const auto depth = static_cast<unsigned char>(data[8]);
  const auto colour = static_cast<unsigned char>(data[9]);
  if (colour >= kChannels.size() || kChannels[colour] == 0) return std::nullopt;
  return PngChunks::Size{big_endian(data), big_endian(data.substr(4)), kChannels[colour], depth > 8 ? 2 : 1};
}

}  // namespace

PngChunks parse_png_chunks(std::string_view file) {
  PngChunks result;
  result.kept.push_back(file.substr(0, kSignatureBytes));
  std::set<std::string_view> seen;
  std::size_t kept_from = kSignatureBytes;  // where the run begins that is to be kept
  std::size_t place = kSignatureBytes;
  while (place + kFrameBytes <= file.size()) {
    const std::size_t length = big_endian(file.substr(place));
    const std::string_view type = file.substr(place + 4, 4);
    if (length > file.size() - place - kFrameBytes) break;
    if (place == kSignatureBytes && type == "IHDR" && length == kHeaderDataBytes)
      result.size = parse_header(file.substr(place + 8, length));
    const std::size_t end = place + kFrameBytes + length;
    if (!is_critical(type) && !(changes_pixels(type) && seen.insert(type).second)) {
      result.kept.push_back(file.substr(kept_from, place - kept_from));
      kept_from = end;
    }
    place = end;
    if (type == "IEND") break;  // what follows is no part of the picture
  }
  result.kept.push_back(file.substr(kept_from));
  return result;
}

}  // namespace cumulus::server

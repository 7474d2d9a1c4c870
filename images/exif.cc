#include <cstddef>
#include <cstdint>
#include <optional>

#include "images/own_formats.h"

namespace cumulus::images {
namespace {

constexpr std::uint16_t kOrientation = 0x0112;

/// Numbers of a TIFF block, in its order of bytes.
class Block {
 public:
  explicit Block(std::string_view bytes) : bytes_(bytes), little_(bytes.substr(0, 2) == "II") {}

  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[at + (little_ ? size - 1 - i : i)]);
      value = value << 8 | byte;
    }
    return value;
  }
  /// Where the orientation stands, two bytes.
  std::optional<std::size_t> orientation() const {
    if (bytes_.size() < 8 || (!little_ && bytes_.substr(0, 2) != "MM")) return std::nullopt;
    const std::size_t directory = number(4, 4);
    const std::size_t entries = number(directory, 2);
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t entry = directory + 2 + 12 * i;
      if (entry + 12 > bytes_.size()) return std::nullopt;
      if (number(entry, 2) == kOrientation) return entry + 8;
    }
    return std::nullopt;
  }
  bool little() const { return little_; }

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(std::string_view exif) {
  const Block block(exif);
  const std::optional<std::size_t> place = block.orientation();
  const std::uint32_t value = place ? block.number(*place, 2) : 1;
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

std::string upright_exif(std::string exif) {
  const Block block(exif);
  const std::optional<std::size_t> place = block.orientation();
  if (!place) return exif;
  exif[*place] = block.little() ? '\1' : '\0';
  exif[*place + 1] = block.little() ? '\0' : '\1';
  return exif;
}

}  // namespace cumulus::images

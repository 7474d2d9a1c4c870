#include <algorithm>
#include <array>

#include "images/load.h"

namespace cumulus::images {
namespace {

struct Magic {
  std::string_view format;
  std::string_view bytes;
};
constexpr std::array kMagics = {
    Magic{"openexr", "\x76\x2f\x31\x01"},
    Magic{"hdr", "#?RADIANCE"},
    Magic{"hdr", "#?RGBE"},
    Magic{"png", "\x89PNG\r\n\x1a\n"},
    Magic{"jpeg", "\xff\xd8\xff"},
    Magic{"tiff", std::string_view("II*\0", 4)},
    Magic{"tiff", std::string_view("MM\0*", 4)},
    Magic{"tiff", std::string_view("II+\0", 4)},  // BigTIFF
    Magic{"tiff", std::string_view("MM\0+", 4)},
};

}  // namespace

std::string format_by_first_bytes(std::string_view bytes) {
  const auto found = std::find_if(kMagics.begin(), kMagics.end(), [&](const Magic& magic) {
    return bytes.substr(0, magic.bytes.size()) == magic.bytes;
  });
  return found == kMagics.end() ? std::string() : std::string(found->format);
}

}  // namespace cumulus::images

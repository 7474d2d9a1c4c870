#pragma once

#include <cstdint>
#include <string>

#include "tests/support/png_files.h"

namespace cumulus::testing {

/// An EXR whose header has an attribute of 2^31 - 1 bytes, of a type that nobody knows.
inline std::string exr_with_a_huge_attribute() {
  std::string file("\x76\x2f\x31\x01\x02\0\0\0", 8);
  file += std::string("note\0mystery\0", 13) + std::string("\xff\xff\xff\x7f", 4);
  return file + std::string(64, 'x');
}

/// By default 96 MiB of pixels in some 100 KB: a second's work, or less.
inline std::string slow_png(std::uint32_t extent = 10000) {
  return png_file(extent, extent, std::string(std::size_t{extent} * (extent + 1), '\0'));
}

}  // namespace cumulus::testing

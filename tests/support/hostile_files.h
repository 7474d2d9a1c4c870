#pragma once

#include <string>

namespace cumulus::testing {

/// An EXR whose header has an attribute of 2^31 - 1 bytes, of a type that nobody knows.
inline std::string exr_with_a_huge_attribute() {
  std::string file("\x76\x2f\x31\x01\x02\0\0\0", 8);
  file += std::string("note\0mystery\0", 13) + std::string("\xff\xff\xff\x7f", 4);
  return file + std::string(64, 'x');
}

}  // namespace cumulus::testing

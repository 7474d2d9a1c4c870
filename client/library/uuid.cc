#include "library/uuid.h"

#include <absl/strings/str_format.h>

#include <cstdint>
#include <random>

namespace cumulus {

std::string make_uuid() {
  std::random_device random;
  const auto word = [&random] { return static_cast<std::uint32_t>(random()); };
  const std::uint32_t middle = (word() & 0xffff0fffU) | 0x00004000U;   // version 4
  const std::uint32_t variant = (word() & 0x3fffffffU) | 0x80000000U;  // RFC 4122
  return absl::StrFormat("%08x-%04x-%04x-%04x-%04x%08x", word(), middle >> 16, middle & 0xffffU,
                         variant >> 16, variant & 0xffffU, word());
}

}  // namespace cumulus

#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace cumulus::server {

// Debian builds abseil with a string_view of its own, which std::string_view does not convert to and from.

inline absl::string_view to_absl_view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view to_std_view(absl::string_view text) { return {text.data(), text.size()}; }

namespace internal {
template <class Part>
decltype(auto) absl_part(const Part& part) {
  if constexpr (std::is_same_v<Part, std::string_view>) {
    return to_absl_view(part);
  } else {
    return (part);
  }
}
}  // namespace internal

/// The parts (text, numbers) one after another: absl::StrCat that takes std::string_view too.
template <class... Parts>
std::string concat(const Parts&... parts) {
  return absl::StrCat(internal::absl_part(parts)...);
}

/// As much of `text` as fits into `max_bytes` without a cut through a character of UTF-8.
inline std::string_view cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace cumulus::server

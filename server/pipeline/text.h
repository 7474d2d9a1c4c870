#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

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

}  // namespace cumulus::server

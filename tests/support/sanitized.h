#pragma once

namespace cumulus::testing {

/// Whether this build is slower by a sanitizer, which also keeps what is freed: neither times nor memory are
/// held against bars then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace cumulus::testing

#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_join.h>
#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/pipeline/text.h"

namespace cumulus::server {

/// Reads fields, fills their defaults, and collects what is wrong with them.
class Fields {
 public:
  /// `value`, `fallback` where it is 0; complains unless it is then from 1 to `max`.
  std::size_t count(std::string_view path, std::int64_t value, std::int64_t fallback, std::int64_t max) {
    if (value < 0 || value > max) {
      complain(path, concat("is ", value, "; 1 to ", max, " is right, or 0 for the default",
                            fallback_text(fallback)));
    }
    return static_cast<std::size_t>(value == 0 ? fallback : value);
  }

  /// As count, of a duration that is more than 0.
  template <class Message>
  absl::Duration duration(std::string_view path, const Message& message, bool present,
                          absl::Duration fallback, absl::Duration min) {
    if (!present) return fallback;
    constexpr std::int64_t kMaxSeconds = std::int64_t{10} * 365 * 24 * 3600;
    const absl::Duration value = absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
    if (value < min || value > absl::Seconds(kMaxSeconds)) {
      complain(path, concat("is ", absl::FormatDuration(value), "; at least ", absl::FormatDuration(min),
                            " is right, and at most ten years"));
    }
    return value;
  }

  void complain(std::string_view path, std::string_view what) { lines_.push_back(concat(path, ": ", what)); }
  absl::Status status() const {
    return lines_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
  }

 private:
  static std::string fallback_text(std::int64_t fallback) {
    return fallback > 0 ? concat(" (", fallback, ")") : std::string();
  }

  std::vector<std::string> lines_;
};

}  // namespace cumulus::server

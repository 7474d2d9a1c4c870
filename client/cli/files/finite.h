#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cumulus/array.h"

namespace cumulus::cli {

/// What becomes of pixels that are NaN or infinite, which would spoil all that is computed from them.
enum class NonFinite {
  kRefuse,  ///< the first of them is an error
  kClamp,   ///< NaN becomes 0; an infinity the largest number of the picture, at least 65504, half floats'
            ///< largest
  kKeep,    ///< they are taken as they are
  kRefusedByServer,  ///< likewise, and the server looks for them
};

/// The end of a refusal.
inline constexpr const char* kNonFiniteCure =
    "numbers are right, unless --non-finite is clamp (NaN to 0, infinity to the largest) or keep";

/// What is not finite of an array.
struct NonFiniteValues {
  std::int64_t count = 0;
  std::string first;  // "row 3, column 7, channel R is nan"
};

/// Where a sample of [height, width, channels], of that without channels, or of a batch of images lies: "row
/// 3, column 7, channel R". Channels that have no name in `channels` are numbers.
std::string position_of(const Shape& shape, std::int64_t sample, const std::vector<std::string>& channels);

/// Finds them, and with kClamp changes them. FAILED_PRECONDITION, with the position, for kRefuse. `path` and
/// the channels' names are for the message.
absl::Status treat_non_finite(NonFinite policy, const std::string& path,
                              const std::vector<std::string>& channels, Array& pixels,
                              NonFiniteValues& found);

}  // namespace cumulus::cli

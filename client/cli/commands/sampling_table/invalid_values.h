#pragma once

#include <cstdint>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// Values of a map that are no weights, of the channels that count: the server clamps or refuses them.
struct InvalidValues {
  std::int64_t values = 0;    // that count, of the whole map
  std::int64_t negative = 0;  // as resampling filters leave them in photographs; minus infinity is one
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::string first;  // "row 3, column 7, channel 0 is -0.25"

  std::int64_t count() const { return negative + nan + infinite; }
  /// Adds what another map of the same table, which is called `path`, has.
  void add(const InvalidValues& other, const std::string& path);
};

/// Of a map, [height, width, channels].
InvalidValues find_invalid(const Array& pixels);

/// "596 negative (taken as 0) of 98304 values, the first: row 3, column 7, channel 0 is -0.25"; "" where
/// there are none.
std::string describe_clamped(const InvalidValues& invalid);

}  // namespace cumulus::cli

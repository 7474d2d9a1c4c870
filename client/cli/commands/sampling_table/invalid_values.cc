#include "cli/commands/sampling_table/invalid_values.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "cli/files/elements.h"
#include "cli/files/finite.h"

namespace cumulus::cli {
namespace {

/// The first three channels are colour, and so is the first of fewer: no other channel counts.
std::int64_t counted_channels(std::int64_t channels) { return channels >= 3 ? 3 : 1; }

/// Halves are looked at as bits, which is quicker than converting them.
bool is_weight(Half half) { return half.bits < 0x7C00U || half.bits == 0x8000U; }
bool is_weight(float value) { return std::isfinite(value) && value >= 0.0F; }

void add_one(double value, InvalidValues& found) {
  if (std::isnan(value)) {
    ++found.nan;
  } else {
    ++(value < 0 ? found.negative : found.infinite);
  }
}

std::string name_of_position(const Shape& shape, std::int64_t sample, double value) {
  return absl::StrCat(position_of(shape, sample, {}), " is ", value);
}

}  // namespace

void InvalidValues::add(const InvalidValues& other, const std::string& path) {
  if (count() == 0 && other.count() > 0) first = absl::StrCat(path, ": ", other.first);
  values += other.values;
  negative += other.negative;
  nan += other.nan;
  infinite += other.infinite;
}

InvalidValues find_invalid(const Array& pixels) {
  const std::int64_t channels = pixels.shape().back();
  const std::int64_t counted = counted_channels(channels);
  const auto samples = static_cast<std::int64_t>(pixels.bytes().size() / element_bytes(pixels.type()));
  InvalidValues found;
  found.values = samples / channels * counted;
  with_elements(pixels, [&]<class T>(const T* elements) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Half>) {
      // Most maps have none, which this loop without branches sees soonest.
      if (std::count_if(elements, elements + samples, [](T x) { return !is_weight(x); }) == 0) return;
      for (std::int64_t i = 0; i < samples; ++i) {
        if (is_weight(elements[i]) || i % channels >= counted) continue;
        const auto value = static_cast<double>(elements[i]);
        if (found.count() == 0) found.first = name_of_position(pixels.shape(), i, value);
        add_one(value, found);
      }
    }
  });
  return found;
}

std::string describe_clamped(const InvalidValues& invalid) {
  if (invalid.count() == 0) return "";
  std::vector<std::string> kinds;
  const auto add_kind = [&](std::int64_t values, const char* kind) {
    if (values > 0) kinds.push_back(absl::StrCat(values, kind));
  };
  add_kind(invalid.negative, " negative (taken as 0)");
  add_kind(invalid.nan, " NaN (taken as 0)");
  add_kind(invalid.infinite, " infinite (taken as the largest float)");
  return absl::StrCat(absl::StrJoin(kinds, ", "), " of ", invalid.values,
                      " values, the first: ", invalid.first);
}

}  // namespace cumulus::cli

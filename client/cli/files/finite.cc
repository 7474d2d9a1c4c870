#include "cli/files/finite.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/files/elements.h"
#include "cli/files/shares.h"

namespace cumulus::cli {
namespace {

/// Halves are looked at as bits, which is quicker than converting them.
bool is_finite(Half value) { return (value.bits & 0x7C00U) != 0x7C00U; }
bool is_finite(float value) { return std::isfinite(value); }
bool is_finite(double value) { return std::isfinite(value); }

constexpr double kLargestHalf = 65504;

struct NonFiniteShare {
  std::int64_t count = 0;
  std::size_t first = 0;  // if there is one
};

/// On all processors: of a .npy file the pages are read here.
template <class T>
NonFiniteShare find_non_finite(const T* values, std::size_t count) {
  std::vector<NonFiniteShare> shares(shares_of(count * sizeof(T)));
  for_each_share(shares.size(), count, [&](std::size_t share, std::size_t begin, std::size_t end) {
    NonFiniteShare own;
    for (std::size_t i = begin; i < end; ++i) {
      if (is_finite(values[i])) continue;
      if (own.count++ == 0) own.first = i;
    }
    shares[share] = own;
  });
  NonFiniteShare all;
  for (const NonFiniteShare& share : shares) {
    if (all.count == 0) all.first = share.first;
    all.count += share.count;
  }
  return all;
}

template <class T>
void clamp_all(T* values, std::size_t count) {
  double largest = kLargestHalf;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_finite(values[i])) largest = std::max(largest, std::abs(static_cast<double>(values[i])));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_finite(values[i])) continue;
    if constexpr (std::is_same_v<T, Half>) {
      const bool nan = (values[i].bits & 0x03FFU) != 0;
      values[i].bits = static_cast<std::uint16_t>(nan ? 0U : (values[i].bits & 0x8000U) | 0x7BFFU);
    } else {
      values[i] = std::isnan(values[i]) ? T{0} : static_cast<T>(std::copysign(largest, values[i]));
    }
  }
}

}  // namespace

std::string position_of(const Shape& shape, std::int64_t sample, const std::vector<std::string>& channels) {
  std::string text;
  if (shape.size() < 2) return absl::StrCat("element ", sample);
  const std::int64_t per_pixel = shape.size() > 2 ? shape.back() : 1;
  const std::size_t columns = shape.size() > 3 ? 2 : 1;
  const std::int64_t pixel = sample / per_pixel;
  const std::int64_t row = pixel / shape[columns];
  if (shape.size() > 3) absl::StrAppend(&text, "image ", row / shape[1], ", ");
  absl::StrAppend(&text, "row ", shape.size() > 3 ? row % shape[1] : row, ", column ",
                  pixel % shape[columns]);
  if (shape.size() < 3) return text;
  const auto channel = static_cast<std::size_t>(sample % per_pixel);
  return absl::StrCat(text, ", channel ",
                      channel < channels.size() ? channels[channel] : absl::StrCat(channel));
}

absl::Status treat_non_finite(NonFinite policy, const std::string& path,
                              const std::vector<std::string>& channels, Array& pixels,
                              NonFiniteValues& found) {
  if (policy == NonFinite::kRefusedByServer) return absl::OkStatus();
  const std::size_t count = pixels.bytes().size() / element_bytes(pixels.type());
  const Shape shape = pixels.shape();
  with_elements(pixels, [&]<class T>(const T* values) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Half>) {
      const NonFiniteShare all = find_non_finite(values, count);
      if (found.count == 0 && all.count > 0) {
        found.first = absl::StrCat(position_of(shape, static_cast<std::int64_t>(all.first), channels), " is ",
                                   static_cast<double>(values[all.first]));
      }
      found.count += all.count;
      if (found.count > 0 && policy == NonFinite::kClamp) {
        clamp_all(reinterpret_cast<T*>(pixels.mutable_bytes().data()), count);
      }
    }
  });
  if (found.count == 0 || policy != NonFinite::kRefuse) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": ", found.first,
                   found.count > 1 ? absl::StrCat(", and ", found.count - 1, " more are not finite") : "",
                   "; ", kNonFiniteCure));
}

}  // namespace cumulus::cli

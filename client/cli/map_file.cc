#include "cli/map_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "cli/picture_file.h"

namespace cumulus::cli {
namespace {

template <class T, class Invalid>
std::int64_t count_if(const Array& pixels, const Invalid& invalid) {
  const auto bytes = pixels.bytes();
  const std::span values(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
  return std::count_if(values.begin(), values.end(), invalid);
}

std::int64_t count_invalid(const Array& pixels) {
  if (pixels.type() == ElementType::kFloat32) {
    return count_if<float>(pixels, [](float x) { return !std::isfinite(x) || x < 0.0F; });
  }
  if (pixels.type() == ElementType::kFloat16) {
    return count_if<std::uint16_t>(pixels, [](unsigned half) {
      const bool finite = (half & 0x7FFFu) < 0x7C00u;
      const bool negative = half > 0x8000u;
      return !finite || negative;
    });
  }
  return 0;
}

}  // namespace

absl::StatusOr<Map> read_map(const std::string& path) {
  absl::StatusOr<Array> pixels = read_picture(path, HalfFloats::kKeep);
  if (!pixels.ok()) return pixels.status();
  const std::int64_t invalid = count_invalid(*pixels);
  return Map{*std::move(pixels), invalid};
}

void describe_map(const Map& map, Report& report) {
  report.add("width", map.pixels.shape()[1]);
  report.add("height", map.pixels.shape()[0]);
  report.add("channels", map.pixels.shape()[2]);
  report.add("element_type", std::string(element_name(map.pixels.type())));
  if (map.invalid_values > 0) report.add("values_clamped", map.invalid_values);
}

}  // namespace cumulus::cli

#include "cli/map_file.h"

#include <cmath>
#include <span>
#include <utility>

#include "cli/picture_file.h"

namespace cumulus::cli {

absl::StatusOr<Map> read_map(const std::string& path) {
  absl::StatusOr<Array> pixels = read_picture(path);
  if (!pixels.ok()) return pixels.status();
  Map map{*std::move(pixels), 0};
  if (map.pixels.type() != ElementType::kFloat32) return map;
  const auto bytes = map.pixels.bytes();
  for (const float value :
       std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float))) {
    if (!std::isfinite(value) || value < 0.0F) ++map.invalid_values;
  }
  return map;
}

void describe_map(const Map& map, Report& report) {
  report.add("width", map.pixels.shape()[1]);
  report.add("height", map.pixels.shape()[0]);
  report.add("channels", map.pixels.shape()[2]);
  if (map.invalid_values > 0) report.add("values_clamped", map.invalid_values);
}

}  // namespace cumulus::cli

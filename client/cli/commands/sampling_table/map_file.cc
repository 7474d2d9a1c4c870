#include "cli/commands/sampling_table/map_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "cli/files/elements.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"

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

/// Of a row of weights, or a picture without channels: with the extents that are left out.
absl::StatusOr<Shape> picture_shape(const std::string& path, const Shape& shape) {
  const bool fits = !shape.empty() && shape.size() <= 3 &&
                    std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent > 0; });
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has the shape [", absl::StrJoin(shape, ", "),
                     "]; a map is [height, width], [height, width, channels] or, of a single row, [width]"));
  }
  if (shape.size() == 1) return Shape{1, shape[0], 1};
  return Shape{shape[0], shape[1], shape.size() == 3 ? shape[2] : 1};
}

/// The nearest float, but none that is 0 where the number is more, nor infinite where it is finite.
float nearest_weight(double value) {
  using Limits = std::numeric_limits<float>;
  if (value > 0.0 && std::isfinite(value)) {
    return static_cast<float>(
        std::clamp(value, static_cast<double>(Limits::denorm_min()), static_cast<double>(Limits::max())));
  }
  if (value < 0.0 && std::isfinite(value)) return -nearest_weight(-value);
  return static_cast<float>(value);
}

absl::StatusOr<Array> read_npy_map(const std::string& path) {
  const absl::StatusOr<Array> file = read_npy(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Shape> shape = picture_shape(path, file->shape());
  if (!shape.ok()) return shape.status();
  const bool as_it_is = file->type() == ElementType::kUint8 || file->type() == ElementType::kFloat16 ||
                        file->type() == ElementType::kFloat32;
  absl::StatusOr<Array> map = Array::allocate(as_it_is ? file->type() : ElementType::kFloat32, *shape);
  if (!map.ok()) return map;
  if (as_it_is) {
    std::copy(file->bytes().begin(), file->bytes().end(), map->mutable_bytes().begin());
    return map;
  }
  auto* out = reinterpret_cast<float*>(map->mutable_bytes().data());
  const std::size_t count = map->bytes().size() / sizeof(float);
  with_elements(*file, [&]<class T>(const T* elements) {
    if constexpr (std::is_arithmetic_v<T>) {
      for (std::size_t i = 0; i < count; ++i) out[i] = nearest_weight(static_cast<double>(elements[i]));
    }
  });
  return map;
}

}  // namespace

absl::StatusOr<Map> read_map(const std::string& path) {
  absl::StatusOr<Array> pixels = is_npy(path) ? read_npy_map(path) : read_image(path, HalfFloats::kKeep);
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

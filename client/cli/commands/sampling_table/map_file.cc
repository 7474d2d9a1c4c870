#include "cli/commands/sampling_table/map_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "cli/files/elements.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"

namespace cumulus::cli {
namespace {

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

/// The same elements, where they lie, in another shape of as many.
absl::StatusOr<Array> reshaped(Array array, Shape shape) {
  const ElementType type = array.type();
  const auto kept = std::make_shared<Array>(std::move(array));
  return Array::adopt(type, std::move(shape), kept->mutable_bytes(), [kept] {});
}

absl::StatusOr<Array> read_npy_map(const std::string& path) {
  absl::StatusOr<Array> file = read_npy(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Shape> shape = picture_shape(path, file->shape());
  if (!shape.ok()) return shape.status();
  const bool as_it_is = file->type() == ElementType::kUint8 || file->type() == ElementType::kFloat16 ||
                        file->type() == ElementType::kFloat32;
  if (as_it_is) return reshaped(*std::move(file), *shape);
  absl::StatusOr<Array> map = Array::allocate(ElementType::kFloat32, *shape);
  if (!map.ok()) return map;
  auto* out = reinterpret_cast<float*>(map->mutable_bytes().data());
  const std::size_t count = map->bytes().size() / sizeof(float);
  with_elements(*file, [&]<class T>(const T* elements) {
    if constexpr (std::is_arithmetic_v<T>) {
      for (std::size_t i = 0; i < count; ++i) out[i] = nearest_weight(static_cast<double>(elements[i]));
    }
  });
  return map;
}

std::string text_of(const images::Window& window) {
  return absl::StrCat(window.width, " x ", window.height, " at ", window.x, ", ", window.y);
}

/// The picture as its display window shows it.
absl::Status set_into_display(const std::string& path, ImagePicture& picture, Map& map) {
  const images::Window& data = picture.metadata.data;
  const images::Window& display = picture.metadata.display;
  if (data == display || display.width < 1 || display.height < 1) return absl::OkStatus();
  const int left = std::max(data.x, display.x);
  const int right = std::min(data.x + data.width, display.x + display.width);
  const int top = std::max(data.y, display.y);
  const int bottom = std::min(data.y + data.height, display.y + display.height);
  if (left >= right || top >= bottom) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": its data window (", text_of(data),
                                                   ") lies outside of its display window (", text_of(display),
                                                   "), so that the map is empty; write the windows anew"));
  }
  absl::StatusOr<Array> whole =
      Array::allocate(picture.pixels.type(), {display.height, display.width, picture.pixels.shape()[2]});
  if (!whole.ok()) return whole.status();
  const std::size_t pixel =
      static_cast<std::size_t>(picture.pixels.shape()[2]) * element_bytes(picture.pixels.type());
  std::fill(whole->mutable_bytes().begin(), whole->mutable_bytes().end(), std::byte{0});
  const auto place = [pixel](const images::Window& window, int x, int y) {
    return (static_cast<std::size_t>(y - window.y) * static_cast<std::size_t>(window.width) +
            static_cast<std::size_t>(x - window.x)) *
           pixel;
  };
  for (int y = top; y < bottom; ++y) {
    const auto row =
        picture.pixels.bytes().subspan(place(data, left, y), static_cast<std::size_t>(right - left) * pixel);
    std::copy(row.begin(), row.end(),
              whole->mutable_bytes().begin() + static_cast<std::ptrdiff_t>(place(display, left, y)));
  }
  picture.pixels = *std::move(whole);
  map.window = absl::StrCat("the data window (", text_of(data), ") was set into the display window (",
                            text_of(display), "); what it lacks there is 0");
  return absl::OkStatus();
}

absl::StatusOr<Map> read_image_map(const std::string& path, const PictureChoice& choice) {
  absl::StatusOr<ImagePicture> picture = read_image_picture(path, {.as = ReadAs::kHalves, .choice = choice});
  if (!picture.ok()) return picture.status();
  Map map;
  if (absl::Status set = set_into_display(path, *picture, map); !set.ok()) return set;
  map.pixels = std::move(picture->pixels);
  map.chromaticities = picture->metadata.chromaticities;
  map.left_out = std::move(picture->left_out);
  return map;
}

}  // namespace

std::optional<std::array<float, 3>> luminance_of(const std::array<float, 8>& chromaticities) {
  // Columns X, Y and Z of each primary with Y of 1, scaled by what makes their sum the white: Cramer's rule.
  using Column = std::array<double, 3>;
  const auto column = [&](std::size_t colour) {
    const double x = chromaticities[2 * colour];
    const double y = chromaticities[2 * colour + 1];
    return Column{x / y, 1.0, (1.0 - x - y) / y};
  };
  const auto determinant = [](const Column& a, const Column& b, const Column& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1]) +
           c[0] * (a[1] * b[2] - a[2] * b[1]);
  };
  const std::array<Column, 4> colours = {column(0), column(1), column(2), column(3)};
  const double whole = determinant(colours[0], colours[1], colours[2]);
  std::array<float, 3> weights{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::array<Column, 3> replaced = {colours[0], colours[1], colours[2]};
    replaced[channel] = colours[3];
    const double weight = determinant(replaced[0], replaced[1], replaced[2]) / whole;
    if (!std::isfinite(weight)) return std::nullopt;
    weights[channel] = static_cast<float>(std::max(weight, 0.0));
  }
  return weights;
}

absl::StatusOr<Map> read_map(const std::string& path, const PictureChoice& choice) {
  absl::StatusOr<Map> map = Map();
  if (holds_npy(path)) {
    absl::StatusOr<Array> pixels = read_npy_map(path);
    if (!pixels.ok()) return pixels.status();
    map->pixels = *std::move(pixels);
  } else {
    map = read_image_map(path, choice);
    if (!map.ok()) return map;
  }
  map->invalid = find_invalid(map->pixels);
  return map;
}

void describe_map(const Map& map, Report& report) {
  report.add("width", map.pixels.shape()[1]);
  report.add("height", map.pixels.shape()[0]);
  report.add("channels", map.pixels.shape()[2]);
  report.add("element_type", std::string(element_name(map.pixels.type())));
  if (!map.left_out.empty()) report.add("channels_left_out", map.left_out);
  std::vector<std::string> warnings;
  if (!map.window.empty()) warnings.push_back(map.window);
  if (map.invalid.count() > 0) {
    report.add("values_clamped", map.invalid.count());
    warnings.push_back(describe_clamped(map.invalid) + "; --invalid-weights refuse refuses them");
  }
  if (!warnings.empty()) report.add("warnings", std::move(warnings));
}

}  // namespace cumulus::cli

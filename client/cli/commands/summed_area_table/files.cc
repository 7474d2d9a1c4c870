#include "cli/commands/summed_area_table/files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cli/files/elements.h"
#include "cli/files/extension.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"

namespace cumulus::cli {
namespace {

template <class T>
bool is_finite(T value) {
  if constexpr (std::is_integral_v<T>) return true;
  return std::isfinite(static_cast<double>(value));
}

/// The number of the first element that is no finite number; that of all elements where there is none.
std::size_t first_that_spreads(const Array& image) {
  return with_elements(image, [&]<class T>(const T* elements) {
    const std::size_t count = image.bytes().size() / sizeof(T);
    std::size_t i = 0;
    while (i < count && is_finite(elements[i])) ++i;
    return i;
  });
}

}  // namespace

absl::StatusOr<Array> read_radius_map(const std::string& path, float scale) {
  const absl::StatusOr<Array> map = is_npy(path) ? read_npy(path) : read_image_as_stored(path);
  if (!map.ok()) return map.status();
  const Shape& shape = map->shape();
  if ((shape.size() != 2 && shape.size() != 3) || shape.back() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has the shape [", absl::StrJoin(shape, ", "),
                                                   "]; a radius map is [height, width] or [height, width, "
                                                   "channels]"));
  }
  absl::StatusOr<Array> radii = Array::allocate(ElementType::kFloat32, {shape[0], shape[1]});
  if (!radii.ok()) return radii;
  const auto channels = static_cast<std::size_t>(shape.size() == 3 ? shape[2] : 1);
  auto* out = reinterpret_cast<float*>(radii->mutable_bytes().data());
  const std::size_t pixels = radii->bytes().size() / sizeof(float);
  with_elements(*map, [&](const auto* elements) {
    for (std::size_t i = 0; i < pixels; ++i) out[i] = static_cast<float>(elements[i * channels]) * scale;
  });
  return radii;
}

void warn_of_what_spreads(const Array& image, Report& report) {
  const Shape& shape = image.shape();
  const auto elements = static_cast<std::int64_t>(image.bytes().size() / element_bytes(image.type()));
  const auto first = static_cast<std::int64_t>(first_that_spreads(image));
  if (first == elements || shape.size() < 2) return;
  const std::int64_t pixel = shape.size() > 2 ? first / shape[2] : first;
  report.add(
      "warning",
      absl::StrCat("the pixel in row ", pixel / shape[1], ", column ", pixel % shape[1],
                   " is NaN or infinite; sums over rectangles that reach below it and to its right, and "
                   "means from such sums, are spoiled"));
}

bool holds_sums(const std::string& path) {
  return is_npy(path) || (holds_floats(path) && extension_of(path) != ".hdr");
}

ElementType stored_type(const std::string& path, ElementType sums) {
  if (is_npy(path) || element_bytes(sums) < sizeof(double)) return sums;
  return extension_of(path) == ".exr" ? ElementType::kFloat32 : ElementType::kFloat64;
}

absl::StatusOr<Array> table_for_file(Array table, const std::string& path) {
  if (stored_type(path, table.type()) == table.type() || table.type() == ElementType::kFloat64) return table;
  absl::StatusOr<Array> doubles = Array::allocate(ElementType::kFloat64, table.shape());
  if (!doubles.ok()) return doubles;
  auto* out = reinterpret_cast<double*>(doubles->mutable_bytes().data());
  const std::size_t count = table.bytes().size() / sizeof(double);
  with_elements(table, [&]<class T>(const T* elements) {
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<double>(elements[i]);
    }
  });
  return doubles;
}

}  // namespace cumulus::cli

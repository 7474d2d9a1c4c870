#include "cli/commands/summed_area_table/files.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cli/files/elements.h"
#include "cli/files/extension.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"

namespace cumulus::cli {

absl::StatusOr<Array> read_radius_map(const std::string& path, float scale) {
  const absl::StatusOr<Array> map = holds_npy(path) ? read_npy(path) : read_image_as_stored(path);
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

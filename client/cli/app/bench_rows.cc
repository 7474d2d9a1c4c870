#include "cli/app/bench_rows.h"

#include <cstddef>
#include <random>
#include <span>
#include <utility>

namespace cumulus::cli {

absl::StatusOr<Array> bench_floats(Shape shape) {
  absl::StatusOr<Array> array = Array::allocate(ElementType::kFloat32, std::move(shape));
  if (!array.ok()) return array;
  const std::span<std::byte> bytes = array->mutable_bytes();
  std::minstd_rand random;
  for (float& value : std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)))
    value = static_cast<float>(random() >> 7) / static_cast<float>(1 << 24);
  return array;
}

absl::StatusOr<Array> bench_image(std::int64_t size) { return bench_floats({size, size}); }

absl::StatusOr<Array> bench_points(std::int64_t size) { return bench_floats({size * size / 4, 3}); }

absl::StatusOr<Array> bench_brackets(std::int64_t size) {
  absl::StatusOr<Array> text = Array::allocate(ElementType::kUint8, {size * size / 2 * 2});
  if (!text.ok()) return text;
  std::minstd_rand random;
  std::size_t depth = 0;
  std::size_t left = text->mutable_bytes().size();
  for (std::byte& symbol : text->mutable_bytes()) {
    const bool opens = depth == 0 || (depth < left && (random() & 0x100) != 0);
    symbol = static_cast<std::byte>(opens ? '(' : ')');
    depth += opens ? 1 : static_cast<std::size_t>(-1);
    --left;
  }
  return text;
}

}  // namespace cumulus::cli

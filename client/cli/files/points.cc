#include "cli/files/points.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>

#include "cli/files/elements.h"
#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "cli/files/npz_reader.h"
#include "cli/files/ply.h"

namespace cumulus::cli {
namespace {

absl::StatusOr<Array> read_from_npz(const std::string& path) {
  absl::StatusOr<std::map<std::string, Array>> arrays = read_npz(path);
  if (!arrays.ok()) return arrays.status();
  for (const char* name : {"points", "data"}) {
    if (const auto found = arrays->find(name); found != arrays->end()) return std::move(found->second);
  }
  if (arrays->size() == 1) return std::move(arrays->begin()->second);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read points from ", path, ": of its ", arrays->size(),
                   " arrays none is named points or data; name the right one so, or keep only it"));
}

absl::StatusOr<Array> read_any(const std::string& path) {
  const std::string extension = input_extension(path);
  if (extension == ".ply") return read_ply(path);
  if (extension == ".npy") return read_npy(path);
  if (extension == ".npz") return read_from_npz(path);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read points from ", input_name(path), ": a .ply, .npy or .npz file is right"));
}

constexpr std::int64_t kMostExact = std::int64_t{1} << 53;  // up to here float64 holds every integer

template <class T>
bool held_by_float64(T number) {
  if constexpr (std::is_same_v<T, std::uint64_t>) return number <= std::uint64_t{kMostExact};
  if constexpr (std::is_same_v<T, std::int64_t>) return number >= -kMostExact && number <= kMostExact;
  return true;
}

template <class To>
absl::StatusOr<Array> converted(const Array& numbers, ElementType type, const std::string& path) {
  absl::StatusOr<Array> out = Array::allocate(type, numbers.shape());
  if (!out.ok()) return out;
  const std::size_t count = out->bytes().size() / sizeof(To);
  auto* to = reinterpret_cast<To*>(out->mutable_bytes().data());
  const bool held = with_elements(numbers, [&]<class T>(const T* from) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!held_by_float64(from[i])) return false;
      to[i] = static_cast<To>(from[i]);
    }
    return true;
  });
  if (held) return out;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot take ", path, ": it has integers beyond 2^53, which float64 does not hold; ",
                   "subtract what they have in common"));
}

}  // namespace

absl::StatusOr<Array> to_floating(Array numbers, const std::string& path) {
  switch (numbers.type()) {
    case ElementType::kFloat32:
    case ElementType::kFloat64:
      return numbers;
    case ElementType::kUint8:
    case ElementType::kUint16:
    case ElementType::kFloat16:
      return converted<float>(numbers, ElementType::kFloat32, path);
    default:
      return converted<double>(numbers, ElementType::kFloat64, path);
  }
}

absl::StatusOr<Array> read_points(const std::string& path) {
  absl::StatusOr<Array> points = read_any(path);
  if (!points.ok()) return points;
  const Shape& shape = points->shape();
  if (shape.size() != 2 || shape[1] < 2 || shape[1] > 16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot take ", path, " as points: it is ", std::string(element_name(points->type())), " [",
        absl::StrJoin(shape, ", "), "]; [points, dimensions] of 2 to 16 dimensions is right"));
  }
  return to_floating(*std::move(points), path);
}

}  // namespace cumulus::cli

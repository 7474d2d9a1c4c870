#include "cli/files/picture.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "cli/files/npy.h"

namespace cumulus::cli {
namespace {

/// The same elements with one more axis.
absl::StatusOr<Array> with_channel_axis(const Array& array) {
  absl::StatusOr<Array> picture = Array::allocate(array.type(), {array.shape()[0], array.shape()[1], 1});
  if (picture.ok()) std::copy(array.bytes().begin(), array.bytes().end(), picture->mutable_bytes().begin());
  return picture;
}

}  // namespace

absl::StatusOr<Array> read_picture(const std::string& path, HalfFloats halves) {
  if (!is_npy(path)) return read_image(path, halves);
  absl::StatusOr<Array> array = read_npy(path);
  if (!array.ok()) return array.status();
  const std::size_t axes = array->shape().size();
  const bool keep = halves == HalfFloats::kKeep;
  const bool elements_fit = array->type() == ElementType::kUint8 || array->type() == ElementType::kFloat32 ||
                            (keep && array->type() == ElementType::kFloat16);
  if (!elements_fit || (axes != 2 && axes != 3)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds ", std::string(element_name(array->type())),
                                                   " in ", axes, " axes; a picture is uint8",
                                                   keep ? ", float16" : "",
                                                   " or float32, [height, width] or "
                                                   "[height, width, channels]"));
  }
  return axes == 3 ? std::move(array) : with_channel_axis(*array);
}

std::optional<ElementType> integer_samples(const std::string& path, const Array& picture) {
  if (picture.type() == ElementType::kUint8) return ElementType::kUint8;
  return is_npy(path) ? std::nullopt : integer_samples(path);
}

}  // namespace cumulus::cli

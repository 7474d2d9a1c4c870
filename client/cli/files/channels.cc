#include "cli/files/channels.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace cumulus::cli {
namespace {

std::size_t extent(const Shape& shape, std::size_t axis) {
  return axis < shape.size() ? static_cast<std::size_t>(shape[axis]) : 1;
}

}  // namespace

absl::StatusOr<Array> take_channels(const ArrayView& picture, const std::vector<int>& channels) {
  absl::StatusOr<Array> taken = Array::allocate(
      picture.type(), {picture.shape()[0], picture.shape()[1], static_cast<std::int64_t>(channels.size())});
  if (!taken.ok()) return taken;
  const std::size_t sample = element_bytes(picture.type());
  const std::size_t stride = extent(picture.shape(), 2) * sample;
  const std::byte* pixel = picture.bytes().data();
  std::byte* out = taken->mutable_bytes().data();
  for (std::size_t left = stride == 0 ? 0 : picture.bytes().size() / stride; left > 0;
       --left, pixel += stride) {
    for (const int channel : channels) {
      std::memcpy(out, pixel + static_cast<std::size_t>(channel) * sample, sample);
      out += sample;
    }
  }
  return taken;
}

void put_channels(const ArrayView& part, std::size_t first, Array& picture) {
  const std::size_t sample = element_bytes(part.type());
  const std::size_t from_stride = extent(part.shape(), 2) * sample;
  const std::size_t to_stride = extent(picture.shape(), 2) * sample;
  const std::byte* from = part.bytes().data();
  std::byte* to = picture.mutable_bytes().data() + first * sample;
  for (std::size_t left = part.bytes().size() / from_stride; left > 0; --left) {
    std::memcpy(to, from, from_stride);
    from += from_stride;
    to += to_stride;
  }
}

absl::StatusOr<std::vector<int>> find_channels(const std::vector<std::string>& all,
                                               const std::vector<std::string>& wanted) {
  std::vector<int> found;
  for (const std::string& name : wanted) {
    const std::size_t before = found.size();
    const auto exact = std::find(all.begin(), all.end(), name);
    if (exact != all.end()) {
      found.push_back(static_cast<int>(exact - all.begin()));
      continue;
    }
    for (std::size_t channel = 0; channel < all.size(); ++channel) {
      const std::size_t dot = all[channel].rfind('.');
      if (dot != std::string::npos && all[channel].substr(0, dot) == name)
        found.push_back(static_cast<int>(channel));
    }
    if (found.size() > before) continue;
    return absl::NotFoundError(absl::StrCat("it has no channel or layer ",
                                            name.empty() ? "without a name" : name, "; it has ",
                                            absl::StrJoin(all, ", ")));
  }
  return found;
}

absl::StatusOr<Array> upright(Array picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return picture;
  const std::size_t height = extent(picture.shape(), 0);
  const std::size_t width = extent(picture.shape(), 1);
  const bool transposed = orientation >= 5;
  // Whether the stored columns, and rows, run against the upright ones that they become.
  const bool columns_back = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool rows_back = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Shape shape = picture.shape();
  if (transposed) std::swap(shape[0], shape[1]);
  absl::StatusOr<Array> turned = Array::allocate(picture.type(), shape);
  if (!turned.ok()) return turned;
  const std::size_t pixel = extent(picture.shape(), 2) * element_bytes(picture.type());
  const std::byte* from = picture.bytes().data();
  std::byte* const to = turned->mutable_bytes().data();
  for (std::size_t row = 0; row < height; ++row) {
    const std::size_t y = rows_back ? height - 1 - row : row;
    for (std::size_t column = 0; column < width; ++column, from += pixel) {
      const std::size_t x = columns_back ? width - 1 - column : column;
      std::memcpy(to + (transposed ? x * height + y : y * width + x) * pixel, from, pixel);
    }
  }
  return turned;
}

}  // namespace cumulus::cli

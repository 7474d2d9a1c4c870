#include "server/pipeline/image_shape.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

std::string names(const std::vector<v1::ElementType>& types) {
  return absl::StrJoin(types, " or ",
                       [](std::string* out, v1::ElementType type) { out->append(element_type_name(type)); });
}

}  // namespace

std::string element_type_name(v1::ElementType type) {
  return v1::ElementType_IsValid(type) ? v1::ElementType_Name(type) : absl::StrCat(static_cast<int>(type));
}

ArrayShape ImageShape::array(v1::ElementType element_type) const {
  if (has_channels) return {element_type, {height, width, channels}};
  return {element_type, {height, width}};
}

absl::StatusOr<ImageShape> read_image_shape(const InputArray& input,
                                            const std::vector<v1::ElementType>& types,
                                            std::int64_t max_channels) {
  const auto& extents = input.shape.extents;
  if (std::find(types.begin(), types.end(), input.shape.type) == types.end()) {
    return bad_field(input.field, absl::StrCat("has elements of type ", element_type_name(input.shape.type),
                                               "; ", names(types), " is right"));
  }
  if (extents.size() != 2 && extents.size() != 3) {
    return bad_field(input.field,
                     absl::StrCat("has shape [", absl::StrJoin(extents, ", "),
                                  "]; an image is [height, width] or [height, width, channels]"));
  }
  ImageShape shape{input.shape.type, extents[0], extents[1], 1, extents.size() == 3};
  if (shape.has_channels) shape.channels = extents[2];
  if (shape.height < 1 || shape.width < 1) {
    return bad_field(input.field, absl::StrCat("has shape [", absl::StrJoin(extents, ", "),
                                               "]; height and width are at least 1"));
  }
  if (shape.channels < 1 || shape.channels > max_channels) {
    return bad_field(input.field,
                     absl::StrCat("has ", shape.channels, " channels; 1 to ", max_channels, " is right"));
  }
  return shape;
}

}  // namespace cumulus::server

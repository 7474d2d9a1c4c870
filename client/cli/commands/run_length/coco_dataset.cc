#include "cli/commands/run_length/coco_dataset.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cstdint>
#include <map>
#include <utility>

#include "cli/commands/run_length/coco_file.h"
#include "cumulus/coco_masks.h"

namespace cumulus::cli {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Value;

struct Size {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Null where there is no such field, or no object.
const Value* field_of(const Value& value, const std::string& name) {
  const auto& fields = value.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}

/// 0 where there is none.
std::int64_t number_of(const Value& value, const std::string& name) {
  const Value* field = field_of(value, name);
  return field == nullptr ? 0 : static_cast<std::int64_t>(field->number_value());
}

std::map<std::int64_t, Size> sizes_of_images(const Value& root) {
  std::map<std::int64_t, Size> sizes;
  const Value* images = field_of(root, "images");
  if (images == nullptr) return sizes;
  for (const Value& image : images->list_value().values())
    sizes[number_of(image, "id")] = {number_of(image, "height"), number_of(image, "width")};
  return sizes;
}

absl::StatusOr<std::vector<std::vector<double>>> polygons_of(const ListValue& segmentation) {
  std::vector<std::vector<double>> polygons;
  for (const Value& polygon : segmentation.values()) {
    if (polygon.kind_case() != Value::kListValue)
      return absl::InvalidArgumentError(
          "segmentation is no list of polygons, each a list of x, y, x, y, ...");
    std::vector<double>& corners = polygons.emplace_back();
    for (const Value& number : polygon.list_value().values()) {
      if (number.kind_case() != Value::kNumberValue)
        return absl::InvalidArgumentError("a corner of a polygon is no number");
      corners.push_back(number.number_value());
    }
  }
  if (polygons.empty()) return absl::InvalidArgumentError("segmentation is empty");
  return polygons;
}

absl::StatusOr<CocoMask> mask_of_polygons(const Value& annotation, const ListValue& segmentation,
                                          const std::map<std::int64_t, Size>& sizes) {
  const std::int64_t id = number_of(annotation, "image_id");
  const auto size = sizes.find(id);
  if (size == sizes.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the file's images have none with the id ", id,
                                                   ", whose height and width its polygons need"));
  }
  const auto polygons = polygons_of(segmentation);
  if (!polygons.ok()) return polygons.status();
  const auto counts = coco_counts_of_polygons(*polygons, size->second.height, size->second.width);
  if (!counts.ok()) return counts.status();
  return CocoMask{"", size->second.height, size->second.width, coco_string(*counts)};
}

absl::Status encode_annotation(Value& annotation, const std::map<std::int64_t, Size>& sizes) {
  const Value* segmentation = field_of(annotation, "segmentation");
  if (segmentation == nullptr) return absl::InvalidArgumentError("it has no segmentation");
  const absl::StatusOr<CocoMask> mask = segmentation->kind_case() == Value::kListValue
                                            ? mask_of_polygons(annotation, segmentation->list_value(), sizes)
                                            : read_coco_mask(*segmentation, "segmentation");
  if (!mask.ok()) return mask.status();
  Value& place = (*annotation.mutable_struct_value()->mutable_fields())["segmentation"];
  place.Clear();
  auto& fields = *place.mutable_struct_value()->mutable_fields();
  fields["counts"].set_string_value(mask->counts);
  ListValue& size = *fields["size"].mutable_list_value();
  size.add_values()->set_number_value(static_cast<double>(mask->height));
  size.add_values()->set_number_value(static_cast<double>(mask->width));
  return absl::OkStatus();
}

/// "annotation 3 (id 17)".
std::string name_of(const Value& annotation, std::size_t index) {
  const Value* id = field_of(annotation, "id");
  return absl::StrCat(
      "annotation ", index,
      id == nullptr ? "" : absl::StrCat(" (id ", static_cast<std::int64_t>(id->number_value()), ")"));
}

}  // namespace

absl::StatusOr<CocoDataset> encode_coco_dataset(const std::string& path) {
  absl::StatusOr<Value> root = read_json(path);
  if (!root.ok()) return root.status();
  const std::map<std::int64_t, Size> sizes = sizes_of_images(*root);
  ListValue* annotations = root->kind_case() == Value::kListValue ? root->mutable_list_value() : nullptr;
  if (field_of(*root, "annotations") != nullptr)
    annotations = (*root->mutable_struct_value()->mutable_fields())["annotations"].mutable_list_value();
  if (annotations == nullptr)
    return absl::InvalidArgumentError(path +
                                      " has no annotations; a COCO data set, or a list of results, is right");
  CocoDataset dataset;
  std::size_t index = 0;
  for (Value& annotation : *annotations->mutable_values()) {
    const absl::Status encoded = encode_annotation(annotation, sizes);
    if (encoded.ok()) {
      ++dataset.masks;
    } else {
      dataset.failures.push_back(
          absl::StrCat(path, ": ", name_of(annotation, index), ": ", std::string(encoded.message())));
    }
    ++index;
  }
  if (!google::protobuf::util::MessageToJsonString(*root, &dataset.text).ok())
    return absl::InternalError(path + " cannot be written as JSON again: it has a number that is not finite");
  dataset.text += '\n';
  return dataset;
}

}  // namespace cumulus::cli

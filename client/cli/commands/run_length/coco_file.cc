#include "cli/commands/run_length/coco_file.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "cli/files/input.h"
#include "cli/files/output.h"
#include "cli/job/report.h"
#include "cumulus/coco_masks.h"

namespace cumulus::cli {
namespace {

using google::protobuf::Value;

constexpr const char* kRight = R"({"size": [height, width], "counts": "..."} is right)";

/// A part of the file and where it is: "annotations[3].segmentation".
struct Part {
  const Value& value;
  std::string place;

  absl::Status wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(place, what));
  }
  /// Null where this is no object, or has no such field.
  const Value* field(const std::string& name) const {
    const auto& fields = value.struct_value().fields();
    const auto found = fields.find(name);
    return found == fields.end() ? nullptr : &found->second;
  }
};

/// Nothing where the number is none of 0 to `most`.
absl::StatusOr<std::int64_t> whole_number(const Value& value, std::int64_t most) {
  const double number = value.number_value();
  const bool whole = value.kind_case() == Value::kNumberValue && number >= 0 &&
                     number <= static_cast<double>(most) && number == std::floor(number);
  if (!whole) return absl::InvalidArgumentError(absl::StrCat("a whole number of 0 to ", most, " is right"));
  return static_cast<std::int64_t>(number);
}

absl::StatusOr<std::string> read_counts(const Part& mask) {
  const Value& counts = *mask.field("counts");
  if (counts.kind_case() == Value::kStringValue) return counts.string_value();
  if (counts.kind_case() != Value::kListValue) return mask.wrong(".counts is neither a string nor a list");
  std::vector<std::uint32_t> lengths;
  for (const Value& length : counts.list_value().values()) {
    const auto number = whole_number(length, std::numeric_limits<std::uint32_t>::max());
    if (!number.ok()) {
      return mask.wrong(
          absl::StrCat(".counts[", lengths.size(), "]: ", std::string(number.status().message())));
    }
    lengths.push_back(static_cast<std::uint32_t>(*number));
  }
  return coco_string(lengths);
}

absl::StatusOr<CocoMask> read_mask(const Part& mask) {
  if (mask.value.kind_case() == Value::kListValue) {
    return mask.wrong(" is polygons; cumulus run-length coco-encode makes masks of them");
  }
  const Value* size = mask.field("size");
  if (size == nullptr || mask.field("counts") == nullptr) {
    return mask.wrong(absl::StrCat(" has no size and counts; ", kRight));
  }
  if (size->list_value().values_size() != 2) return mask.wrong(".size: [height, width] is right");
  CocoMask read;
  std::int64_t* const extents[] = {&read.height, &read.width};
  for (int i = 0; i < 2; ++i) {
    const auto extent = whole_number(size->list_value().values(i), std::numeric_limits<std::int32_t>::max());
    if (!extent.ok()) {
      return mask.wrong(absl::StrCat(".size[", i, "]: ", std::string(extent.status().message())));
    }
    *extents[i] = *extent;
  }
  absl::StatusOr<std::string> counts = read_counts(mask);
  if (!counts.ok()) return counts.status();
  read.counts = *std::move(counts);
  const auto checked = coco_counts(read.counts, read.height, read.width);
  if (!checked.ok()) return mask.wrong(absl::StrCat(": ", std::string(checked.status().message())));
  return read;
}

/// A mask, or a result or annotation that has one.
absl::StatusOr<CocoMask> read_entry(const Part& entry) {
  const Value* segmentation = entry.field("segmentation");
  absl::StatusOr<CocoMask> mask =
      segmentation == nullptr ? read_mask(entry)
                              : read_mask({*segmentation, absl::StrCat(entry.place, ".segmentation")});
  if (!mask.ok()) return mask;
  if (const Value* name = entry.field("file_name"); name != nullptr) mask->file_name = name->string_value();
  return mask;
}

absl::StatusOr<std::vector<CocoMask>> read_root(const Value& root) {
  std::vector<CocoMask> masks;
  const Part file{root, "the file"};
  const Value* annotations = file.field("annotations");
  if (root.kind_case() != Value::kListValue && annotations == nullptr) {
    absl::StatusOr<CocoMask> only = read_entry(file);
    if (!only.ok()) return only.status();
    masks.push_back(*std::move(only));
    return masks;
  }
  if (annotations != nullptr && annotations->kind_case() != Value::kListValue)
    return file.wrong(".annotations is no list");
  const std::string list = annotations == nullptr ? "mask " : "annotation ";
  for (const Value& value : (annotations == nullptr ? root : *annotations).list_value().values()) {
    absl::StatusOr<CocoMask> mask = read_entry({value, absl::StrCat(list, masks.size())});
    if (!mask.ok()) return mask.status();
    masks.push_back(*std::move(mask));
  }
  return masks;
}

absl::Status no_masks(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read COCO masks from ", path, ": ", why));
}

}  // namespace

bool begins_as_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first = 0;
  return (file >> first) && (first == '[' || first == '{');
}

absl::StatusOr<Value> read_json(const std::string& path) {
  const absl::StatusOr<std::string> text = read_text(path);
  if (!text.ok()) return text.status();
  Value root;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &root);
  if (parsed.ok()) return root;
  const std::string why(parsed.message());  // several lines; the others show the place
  return no_masks(path, absl::StrCat("it is no JSON (", why.substr(0, why.find('\n')), ")"));
}

absl::StatusOr<CocoMask> read_coco_mask(const Value& value, const std::string& place) {
  return read_mask({value, place});
}

absl::StatusOr<std::vector<CocoMask>> read_coco_masks(const std::string& path) {
  const absl::StatusOr<Value> root = read_json(path);
  if (!root.ok()) return root.status();
  absl::StatusOr<std::vector<CocoMask>> masks = read_root(*root);
  if (!masks.ok()) return no_masks(path, std::string(masks.status().message()));
  return masks;
}

absl::Status write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  return file.commit();
}

absl::Status write_coco_masks(const std::string& path, std::span<const CocoMask> masks) {
  std::string text = "[";
  for (const CocoMask& mask : masks) {
    absl::StrAppend(&text, text.size() > 1 ? ",\n" : "\n", R"({"size": [)", mask.height, ", ", mask.width,
                    R"(], "counts": )", quoted_in_json(mask.counts), R"(, "file_name": )",
                    quoted_in_json(mask.file_name), "}");
  }
  text += "\n]\n";
  return write_text(path, text);
}

}  // namespace cumulus::cli

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace google::protobuf {
class Value;
}

namespace cumulus::cli {

/// One mask of a COCO file.
struct CocoMask {
  std::string file_name;  // of the picture that it was made from; empty where the file does not say
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::string counts;  // as coco_string gives them
};

/// A JSON file's root. The error names the file.
absl::StatusOr<google::protobuf::Value> read_json(const std::string& path);

/// A mask: size, [height, width], and counts. `place` is where it stands in its file, for errors.
absl::StatusOr<CocoMask> read_coco_mask(const google::protobuf::Value& value, const std::string& place);

/// Whether a file begins as JSON does.
bool begins_as_json(const std::string& path);

/// Reads all masks of a JSON file: objects with size, [height, width], and counts, a COCO string or a list of
/// numbers; alone, in a list, as `segmentation` of results, or of the `annotations` of a data set. Each
/// mask's counts are checked against its size.
absl::StatusOr<std::vector<CocoMask>> read_coco_masks(const std::string& path);

absl::Status write_text(const std::string& path, const std::string& text);

/// Writes a list of objects, which pycocotools takes as they are.
absl::Status write_coco_masks(const std::string& path, std::span<const CocoMask> masks);

}  // namespace cumulus::cli

#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cumulus::cli {

/// A COCO file with all its masks as texts.
struct CocoDataset {
  std::string text;                   // JSON
  std::size_t masks = 0;              // annotations that have a text now
  std::vector<std::string> failures;  // of those that stay as they were, which and why
};

/// The file at `path`, a data set or a list of results, with the `segmentation` of each annotation, polygons
/// or lengths of runs, in the place of which there are size and counts now. Everything else stays: ids,
/// categories, images.
absl::StatusOr<CocoDataset> encode_coco_dataset(const std::string& path);

}  // namespace cumulus::cli

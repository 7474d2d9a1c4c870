#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/array.h"
#include "cumulus/run_length.h"

/// Masks as the COCO data set and pycocotools keep them: the lengths of a mask's runs, column by column, of
/// zeros and ones in turn, the first of zeros (of length 0 where the mask begins with a one), and those
/// lengths as text.
namespace cumulus {

/// The text of the lengths: what pycocotools has in `counts`.
std::string coco_string(std::span<const std::uint32_t> counts);

/// The lengths that a text stands for. INVALID_ARGUMENT, with the place, where it is no such text, is cut
/// off, or where its lengths do not add up to height * width.
absl::StatusOr<std::vector<std::uint32_t>> coco_counts(std::string_view text, std::int64_t height,
                                                       std::int64_t width);

/// The most pixels of a mask.
inline constexpr std::int64_t kMaxCocoPixels = 0xFFFFFFFF;

/// The lengths of the runs of what polygons cover, each x, y, x, y, ... in pixels: pixel for pixel what
/// pycocotools' frPyObjects and merge give. INVALID_ARGUMENT where one is no polygon.
absl::StatusOr<std::vector<std::uint32_t>> coco_counts_of_polygons(
    std::span<const std::vector<double>> polygons, std::int64_t height, std::int64_t width);

/// The ones of a mask.
std::int64_t coco_area(std::span<const std::uint32_t> counts);

/// In pixels; all 0 where a mask has no ones.
struct CocoBox {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  friend bool operator==(const CocoBox&, const CocoBox&) = default;
};

/// The smallest box around the ones of a mask of `height` rows. `counts` are as coco_counts gives them.
CocoBox coco_box(std::span<const std::uint32_t> counts, std::int64_t height);

/// Of `masks`, UINT8 [masks, height, width] or [height, width], of zeros and ones: their runs, for
/// coco_strings. `max_runs` as in EncodeRunLengthsOptions.
Operation encode_coco_masks(const Source& masks, std::int64_t max_runs = 0);

/// The text of each mask, from the arrays `symbols`, `lengths` and `first_runs` that encode_coco_masks gives.
/// INVALID_ARGUMENT where they are other arrays, or a mask, which is named, has other values than 0 and 1.
absl::StatusOr<std::vector<std::string>> coco_strings(const ArrayView& symbols, const ArrayView& lengths,
                                                      const ArrayView& first_runs);

/// Runs for decode_coco_masks.
struct CocoRuns {
  std::vector<std::uint8_t> symbols;
  std::vector<std::uint32_t> lengths;
};

/// The runs of masks of one size, one mask behind the other. INVALID_ARGUMENT as coco_counts, with the mask's
/// number.
absl::StatusOr<CocoRuns> coco_runs(std::span<const std::string> texts, std::int64_t height,
                                   std::int64_t width);

/// Result: `array`, UINT8 [masks, height, width]. `symbols` and `lengths` are those of coco_runs.
Operation decode_coco_masks(const Source& symbols, const Source& lengths, std::int64_t masks,
                            std::int64_t height, std::int64_t width);

}  // namespace cumulus

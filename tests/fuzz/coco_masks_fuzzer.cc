// Text as a COCO mask: whatever it is, reading it neither fails a sanitizer nor contradicts itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/coco_masks.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

/// Two bytes for the mask's height and width; the rest is the text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::int64_t height = data[0];
  const std::int64_t width = data[1] == 255 ? std::int64_t{1} << 40 : data[1];
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto counts = cumulus::coco_counts(text, height, width);
  if (!counts.ok()) return 0;
  const std::int64_t area = cumulus::coco_area(*counts);
  require(area >= 0 && area <= height * width);
  if (height > 0) {
    const cumulus::CocoBox box = cumulus::coco_box(*counts, height);
    require(box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height);
    require(area <= box.width * box.height && (area > 0) == (box.width > 0));
  }
  const auto again = cumulus::coco_counts(cumulus::coco_string(*counts), height, width);
  require(again.ok() && *again == *counts);
  const std::vector<std::string> batch = {std::string(text), std::string(text)};
  require(cumulus::coco_runs(batch, height, width)->lengths.size() == 2 * counts->size());
  return 0;
}

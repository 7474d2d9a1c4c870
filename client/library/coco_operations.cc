#include <algorithm>

#include "cumulus/coco_masks.h"

namespace cumulus {

Operation encode_coco_masks(const Source& masks, std::int64_t max_runs) {
  EncodeRunLengthsOptions options;
  options.order = RunOrder::kColumns;
  options.scope = RunScope::kEachImage;
  options.max_runs = max_runs;
  return encode_run_lengths(masks, options);
}

Operation decode_coco_masks(const Source& symbols, const Source& lengths, std::int64_t masks,
                            std::int64_t height, std::int64_t width) {
  DecodeRunLengthsOptions options;
  options.order = RunOrder::kColumns;
  options.shape = {masks, height, width};
  options.max_output_bytes = std::max<std::int64_t>(1, masks * height * width);
  return decode_run_lengths(symbols, lengths, options);
}

}  // namespace cumulus

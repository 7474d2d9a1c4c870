#include "server/pipeline/non_finite.h"

#include <map>
#include <string>
#include <vector>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::StatusOr<NonFinitePolicy> read_non_finite(v1::NonFinitePolicy policy) {
  return read_enum<NonFinitePolicy>("non_finite", policy,
                                    {{v1::NON_FINITE_POLICY_UNSPECIFIED, NonFinitePolicy::kRefuse},
                                     {v1::REFUSE_NON_FINITE, NonFinitePolicy::kRefuse},
                                     {v1::CLAMP_NON_FINITE, NonFinitePolicy::kClamp},
                                     {v1::KEEP_NON_FINITE, NonFinitePolicy::kKeep}});
}

absl::Status check_non_finite(const NonFinite& found, std::string_view field, const ArrayShape& shape) {
  if (!found.found()) return absl::OkStatus();
  const std::vector<std::int64_t>& extents = shape.extents;
  const bool batch = extents.size() > 3;
  const std::int64_t channels = extents.size() > 2 ? extents.back() : 1;
  const std::int64_t width = extents[batch ? 2 : 1];
  const std::int64_t height = extents[batch ? 1 : 0];
  const std::int64_t pixel = found.element() / channels;
  const std::int64_t row = pixel / width;
  std::map<std::string, std::string> facts = {{"row", concat(row % height)},
                                              {"column", concat(pixel % width)},
                                              {"channel", concat(found.element() % channels)},
                                              {"value", concat(found.value())}};
  if (batch) facts["image"] = concat(row / height);
  return no_answer(
      "NON_FINITE_PIXEL",
      concat(field, ": ", batch ? concat("image ", facts["image"], ", ") : "", "row ", facts["row"],
             ", column ", facts["column"], ", channel ", facts["channel"], " is ", facts["value"],
             "; finite numbers are right, unless non_finite is CLAMP_NON_FINITE or KEEP_NON_FINITE"),
      facts);
}

}  // namespace cumulus::server

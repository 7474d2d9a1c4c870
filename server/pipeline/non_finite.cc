#include "server/pipeline/non_finite.h"

#include <map>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server {

absl::StatusOr<bool> read_non_finite(v1::NonFinitePolicy policy) {
  return read_enum<bool>("non_finite", policy,
                         {{v1::NON_FINITE_POLICY_UNSPECIFIED, false},
                          {v1::KEEP_NON_FINITE, false},
                          {v1::REFUSE_NON_FINITE, true}});
}

absl::Status conclude_non_finite(const NonFiniteReport& report, std::string_view field,
                                 const ArrayShape& shape) {
  if (report.unchecked) {
    return unsupported(
        "NON_FINITE_UNCHECKED",
        "non_finite: is REFUSE_NON_FINITE, and this device does not look at an image's pixels; look at "
        "them before they are uploaded, or use a device of the CPU backend");
  }
  if (report.first_beyond == 0) return absl::OkStatus();
  const std::vector<std::int64_t>& extents = shape.extents;
  const std::int64_t element = report.first_beyond - 1;
  const std::int64_t channels = extents.size() > 2 ? extents.back() : 1;
  const std::int64_t width = extents[extents.size() > 3 ? 2 : 1];
  const std::int64_t height = extents[extents.size() > 3 ? 1 : 0];
  const std::int64_t row = element / channels / width;
  std::map<std::string, std::string> facts = {{"row", concat(row % height)},
                                              {"column", concat(element / channels % width)},
                                              {"channel", concat(element % channels)}};
  const std::string image = extents.size() > 3 ? concat("image ", row / height, ", ") : "";
  if (extents.size() > 3) facts["image"] = concat(row / height);
  return no_answer("NON_FINITE_PIXEL",
                   concat(field, ": ", image, "row ", facts["row"], ", column ", facts["column"],
                          ", channel ", facts["channel"], " is ", report.value,
                          "; finite numbers are right, unless non_finite is KEEP_NON_FINITE"),
                   facts);
}

}  // namespace cumulus::server

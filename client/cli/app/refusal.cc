#include "cli/app/refusal.h"

#include <absl/strings/str_cat.h>

#include <optional>

#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

/// "[1]" where `path` is element 1 of `field`, "" where it is `field` itself.
std::optional<std::string> element_of(const std::string& field, const std::string& path) {
  if (path.compare(0, field.size(), field) != 0) return std::nullopt;
  std::string element = path.substr(field.size());
  if (!element.empty() && element.front() != '[') return std::nullopt;
  return element;
}

}  // namespace

absl::Status name_fields(const absl::Status& refusal, const std::vector<FieldName>& fields) {
  for (const FieldViolation& violation : field_violations(refusal)) {
    for (const FieldName& known : fields) {
      const std::optional<std::string> element = element_of(known.field, violation.field);
      if (!element.has_value()) continue;
      const std::string advice = known.advice.empty() ? "" : absl::StrCat(" (", known.advice, ")");
      return {refusal.code(), absl::StrCat(known.name, *element, ": ", violation.description, advice)};
    }
  }
  return refusal;
}

}  // namespace cumulus::cli

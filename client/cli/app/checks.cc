#include "cli/app/checks.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace cumulus::cli {
namespace {

/// "0.5 to 10000", "at least 1".
template <class T>
std::string range_text(T least, T greatest) {
  if (least == std::numeric_limits<T>::lowest() && greatest == std::numeric_limits<T>::max()) return "finite";
  if (greatest == std::numeric_limits<T>::max()) return absl::StrCat("at least ", least);
  return absl::StrCat(least, " to ", greatest);
}

std::string wrong(const std::string& text, const std::string& right) {
  return absl::StrCat("is ", text.empty() ? "empty" : text, "; ", right, " is right");
}

}  // namespace

CLI::Validator number_within(double least, double greatest) {
  const std::string range = range_text(least, greatest);
  return {[=](const std::string& text) {
            double value = 0;
            const bool fits =
                absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= least && value <= greatest;
            return fits ? std::string() : wrong(text, absl::StrCat("a number, ", range, ","));
          },
          range};
}

CLI::Validator whole_number_within(std::int64_t least, std::int64_t greatest) {
  const std::string range = range_text(least, greatest);
  return {[=](const std::string& text) {
            std::int64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value) && value >= least && value <= greatest;
            return fits ? std::string() : wrong(text, absl::StrCat("a whole number, ", range, ","));
          },
          range};
}

CLI::Validator one_of(const std::map<std::string, int>& names) {
  return {[names](std::string& text) {
            const auto found = names.find(text);
            if (found == names.end()) {
              return wrong(
                  text,
                  absl::StrCat("one of ", absl::StrJoin(names, ", ", [](std::string* out, const auto& name) {
                                 *out += name.first;
                               })));
            }
            text = absl::StrCat(found->second);
            return std::string();
          },
          absl::StrCat(
              "{", absl::StrJoin(names, ",", [](std::string* out, const auto& name) { *out += name.first; }),
              "}")};
}

std::vector<std::string> list_of(const std::string& name, const std::string& word, std::size_t most,
                                 const CLI::Validator& each) {
  std::vector<std::string> values = absl::StrSplit(word, ',');
  if (values.size() > most) {
    throw CLI::ValidationError(
        name, absl::StrCat("is ", word, ": ", values.size(), " values; at most ", most, " are right"));
  }
  for (std::string& value : values) {
    absl::StripAsciiWhitespace(&value);  // "R, G, B", as people write lists
    const std::string problem = each(value);
    if (!problem.empty()) throw CLI::ValidationError(name, problem);
  }
  return values;
}

}  // namespace cumulus::cli

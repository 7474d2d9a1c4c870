#include "cli/app/failure.h"

#include <absl/strings/match.h>

#include <algorithm>
#include <cstddef>

namespace cumulus::cli {

std::string field_of(const std::string& sentence) {
  if (absl::StartsWith(sentence, "-")) return sentence.substr(0, sentence.find_first_of(": ="));
  for (const char* const start :
       {"cannot read ", "cannot write the image ", "cannot write ", "cannot open ", "there is no file "}) {
    if (!absl::StartsWith(sentence, start)) continue;
    const std::string rest = sentence.substr(std::string(start).size());
    const std::size_t end =
        std::min({rest.find(" as an image: "), rest.find(": "), rest.find("; "), rest.size()});
    return rest.substr(0, end);
  }
  // "photo.exr: row 3, column 7, channel R is nan; ...", and no sentence with a colon in its midst.
  const std::size_t colon = sentence.find(": ");
  const bool names = colon != std::string::npos && sentence.find(' ') > colon;
  return names ? sentence.substr(0, colon) : "";
}

Report describe_failure(absl::StatusCode code, int exit_code, const std::string& sentence) {
  Report error;
  error.add("code", absl::StatusCodeToString(code));
  error.add("exit_code", exit_code);
  error.add("field", field_of(sentence));
  error.add("message", sentence);
  return error;
}

}  // namespace cumulus::cli

#include "cli/app/server_words.h"

#include <absl/strings/str_replace.h>

namespace cumulus::cli {

absl::Status in_words_of_options(const absl::Status& failure,
                                 const std::vector<std::pair<std::string, std::string>>& words) {
  if (!absl::IsInvalidArgument(failure) && !absl::IsFailedPrecondition(failure)) return failure;
  return {failure.code(), absl::StrReplaceAll(failure.message(), words)};
}

}  // namespace cumulus::cli

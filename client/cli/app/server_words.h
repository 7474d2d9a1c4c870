#pragma once

#include <absl/status/status.h>

#include <string>
#include <utility>
#include <vector>

namespace cumulus::cli {

/// What the server says of a request, in the words of the command line that it came from: each first string
/// replaced by its second. Only of what the server refused; other failures stay as they are.
absl::Status in_words_of_options(const absl::Status& failure,
                                 const std::vector<std::pair<std::string, std::string>>& words);

}  // namespace cumulus::cli

#pragma once

#include <absl/status/status.h>

#include <string>

#include "cli/job/report.h"

// What a command that fails says to programs.

namespace cumulus::cli {

/// The option or file that a sentence is about: it begins with "--sigma: " or "cannot write out.exr: ", say.
/// Empty where it is about neither.
std::string field_of(const std::string& sentence);

/// What --json prints of a failure, under "error": the status code's name, the exit code, the field and the
/// sentence.
Report describe_failure(absl::StatusCode code, int exit_code, const std::string& sentence);

}  // namespace cumulus::cli

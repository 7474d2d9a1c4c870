#pragma once

namespace cumulus::cli {

enum ExitCode { kDone = 0, kJobFailed = 1, kWrongCommandLine = 2, kNoServer = 3 };

}  // namespace cumulus::cli

#pragma once

namespace cumulus::cli {

/// A command that a signal ended has 128 and the signal's number, as a shell tells it.
enum ExitCode { kDone = 0, kJobFailed = 1, kWrongCommandLine = 2, kNoServer = 3, kSignal = 128 };

}  // namespace cumulus::cli

#pragma once

namespace cumulus::cli {

/// The signal that is to end the program, or 0 as long as none has come. What may wait or write for long asks
/// between its pieces; calls to a server have a Cancellation.
int interrupting_signal();

/// From now on that is `signal`.
void interrupt(int signal);

}  // namespace cumulus::cli

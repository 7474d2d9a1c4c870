#include "cli/files/interruption.h"

#include <atomic>

namespace cumulus::cli {
namespace {

std::atomic<int> signal_that_came = 0;

}  // namespace

int interrupting_signal() { return signal_that_came; }

void interrupt(int signal) { signal_that_came = signal; }

}  // namespace cumulus::cli

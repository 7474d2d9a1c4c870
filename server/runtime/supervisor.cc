#include "server/runtime/supervisor.h"

#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "proto/steady_time.h"
#include "server/runtime/descriptor.h"

namespace cumulus::server {
namespace {

sigset_t supervised_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

/// Waits for a signal, or until `limit` is over (0 is answered then).
int next_signal(absl::Duration limit) {
  const sigset_t signals = supervised_signals();
  const timespec wait = absl::ToTimespec(std::max(limit, absl::ZeroDuration()));
  const int signal = ::sigtimedwait(&signals, nullptr, &wait);
  return signal > 0 ? signal : 0;
}

class Supervisor {
 public:
  explicit Supervisor(const RestartLimits& limits) : limits_(limits), delay_(limits.first_delay) {}

  /// Returns in each worker.
  WorkerLink run() {
    const sigset_t signals = supervised_signals();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &signals, &before);
    while (true) {
      Descriptor told;
      if (std::optional<WorkerLink> link = start(told)) {
        sigprocmask(SIG_SETMASK, &before, nullptr);
        return *std::move(link);
      }
      const absl::Time started = steady_now();
      const int status = wait_for_end();
      const bool served = take_addresses(told);
      decide(status, served, steady_now() - started);
    }
  }

 private:
  /// The link, in the worker.
  std::optional<WorkerLink> start(Descriptor& told) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) give_up("a pipe", 1);
    const pid_t supervisor = ::getpid();
    std::fflush(nullptr);
    worker_ = ::fork();
    if (worker_ < 0) give_up("a worker", 1);
    if (worker_ > 0) {
      ::close(ends[1]);
      told = Descriptor(ends[0]);
      ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // what the worker started may hold the other end for a while
      return std::nullopt;
    }
    ::close(ends[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) ::_exit(1);  // it died before prctl
    ::setpgid(0, 0);  // a terminal's Ctrl-C comes once, through the supervisor; a second one ends at once
    return WorkerLink(ends[1], addresses_);
  }

  int wait_for_end() {
    while (true) {
      const int signal = next_signal(absl::Hours(1));
      // In a container this may be the first process, which gets whatever workers leave behind.
      int status = 0;
      for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        if (ended == worker_) return status;
      }
      if (signal == 0 || signal == SIGCHLD) continue;
      if (signal != SIGHUP) stopping_ = true;
      ::kill(worker_, signal);
    }
  }

  /// False where the worker never served.
  bool take_addresses(const Descriptor& told) {
    std::string text;
    char piece[512];
    for (ssize_t count = 0; (count = ::read(told.number(), piece, sizeof(piece))) > 0;)
      text.append(piece, static_cast<std::size_t>(count));
    if (text.empty()) return false;
    addresses_ = absl::StrSplit(text, '\n', absl::SkipEmpty());
    return true;
  }

  /// Returns where another worker is to start, once it is time for it.
  void decide(int status, bool served, absl::Duration lasted) {
    const bool exited = WIFEXITED(status);
    const int code = exited ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    failed_starts_ = served ? 0 : failed_starts_ + 1;
    const bool never_served = addresses_.empty();  // its configuration is wrong, or its port is taken
    if (stopping_ || code == 0 || never_served || failed_starts_ >= limits_.failed_starts) ::_exit(code);
    if (lasted >= limits_.healthy_after) delay_ = limits_.first_delay;
    say(exited ? "exit code" : "signal", exited ? code : WTERMSIG(status));
    const absl::Time due = steady_now() + delay_;
    delay_ = std::min(delay_ * 2, limits_.max_delay);
    while (steady_now() < due) {
      const int signal = next_signal(due - steady_now());
      if (signal == SIGTERM || signal == SIGINT) ::_exit(0);
    }
  }

  void say(const char* how, int number) const {
    char line[160];
    const int length =
        std::snprintf(line, sizeof(line), "cumulusd: the worker ended (%s %d): another one in %lld ms\n", how,
                      number, static_cast<long long>(absl::ToInt64Milliseconds(delay_)));
    // Nobody is held up who does not read; a line that cannot be written is of no use to anybody.
    if (length > 0) (void)!::write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  }

  [[noreturn]] static void give_up(const char* what, int code) {
    std::fprintf(stderr, "cumulusd: cannot start %s: %s\n", what, std::strerror(errno));
    ::_exit(code);
  }

  const RestartLimits limits_;
  absl::Duration delay_;
  std::vector<std::string> addresses_;
  int failed_starts_ = 0;
  pid_t worker_ = -1;
  bool stopping_ = false;
};

}  // namespace

void WorkerLink::announce(const std::vector<std::string>& addresses) const {
  if (pipe_ < 0) return;
  const std::string text = absl::StrJoin(addresses, "\n") + "\n";
  (void)!::write(pipe_, text.data(), text.size());  // a pipe takes that at once
}

WorkerLink supervise(const RestartLimits& limits) { return Supervisor(limits).run(); }

}  // namespace cumulus::server

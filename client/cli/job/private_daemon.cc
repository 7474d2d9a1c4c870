#include "cli/job/private_daemon.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/files/interruption.h"
#include "cumulus/client.h"
#include "proto/steady_time.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStartTimeout = absl::Seconds(60);  // a GPU's context takes seconds
constexpr absl::Duration kStopTimeout = absl::Seconds(3);

absl::StatusOr<fs::path> find_daemon() {
  std::error_code ignored;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "cumulusd";
  if (access(beside.c_str(), X_OK) == 0) return beside;
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const fs::path candidate = fs::path(folders.substr(begin, end - begin)) / "cumulusd";
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    begin = end + 1;
  }
  return absl::NotFoundError(
      absl::StrCat("cannot find cumulusd beside this program (", beside.string(),
                   ") or in PATH; install it there, or name a running server with --server HOST:PORT"));
}

/// In the child between fork and exec: only what is safe there.
[[noreturn]] void become_daemon(const char* program, char* const* arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before prctl
  setpgid(0, 0);                        // Ctrl-C is for the parent, which then ends us
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(program, arguments);
  _exit(127);
}

bool accepts_connections(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool accepted = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(probe);
  return accepted;
}

bool serves(const std::string& target) {
  const absl::StatusOr<Client> client = Client::connect(target);
  if (!client.ok()) return false;
  const absl::StatusOr<Health> health = client->health();
  return health.ok() && *health == Health::kServing;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateDaemon>> PrivateDaemon::launch(const std::string& backend) {
  absl::StatusOr<std::unique_ptr<TemporaryFolder>> folder = TemporaryFolder::make();
  if (!folder.ok()) return folder.status();
  std::unique_ptr<PrivateDaemon> daemon(new PrivateDaemon(*std::move(folder)));
  if (absl::Status launched = daemon->launch_process(backend); !launched.ok()) return launched;
  return daemon;
}

PrivateDaemon::~PrivateDaemon() {
  if (process_ > 0) {
    kill(process_, served_ ? SIGTERM : SIGKILL);  // one that nobody has used has nothing to bring to an end
    const absl::Time give_up = steady_now() + kStopTimeout;
    while (!has_ended() && steady_now() < give_up) absl::SleepFor(absl::Milliseconds(2));
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }
}

absl::Status PrivateDaemon::launch_process(const std::string& backend) {
  const absl::StatusOr<fs::path> program = find_daemon();
  if (!program.ok()) return program.status();
  const int log = open((folder_->path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (log < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot write into ", folder_->path().string(), ": ", std::strerror(errno)));
  }
  // No lame duck, and no time for sessions: nobody else can have found this server. It leaves the memory that
  // the job does not need to the GPU's other programs.
  std::vector<std::string> words = {
      program->string(), "--listen", target(), "--lame-duck", "0", "--drain", "1", "--memory-on-demand"};
  if (!backend.empty()) words.insert(words.end(), {"--backend", backend});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) become_daemon(program->c_str(), arguments.data(), log, parent);
  close(log);
  if (process_ > 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot start ", program->string(), ": ", std::strerror(errno)));
}

absl::Status PrivateDaemon::wait_until_serving() {
  if (served_) return absl::OkStatus();
  const absl::Time give_up = steady_now() + kStartTimeout;
  // The socket first: a gRPC channel that was refused once waits before it tries again.
  while (!accepts_connections(folder_->path() / "socket") || !serves(target())) {
    if (has_ended())
      return absl::UnavailableError(absl::StrCat("the private cumulusd did not start: ", log_tail()));
    if (interrupting_signal() != 0)
      return absl::CancelledError("interrupted while the private cumulusd started");
    if (steady_now() > give_up) {
      return absl::UnavailableError(absl::StrCat("the private cumulusd was not ready after ",
                                                 absl::FormatDuration(kStartTimeout), ": ", log_tail()));
    }
    absl::SleepFor(absl::Milliseconds(5));
  }
  served_ = true;
  return absl::OkStatus();
}

bool PrivateDaemon::has_ended() {
  if (process_ > 0 && waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
  return process_ <= 0;
}

std::string PrivateDaemon::log_tail() const {
  constexpr std::size_t kTail = 2000;
  std::ifstream file(folder_->path() / "log");
  std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!log.empty() && log.back() == '\n') log.pop_back();
  if (log.empty()) return "it wrote no log";
  return log.size() <= kTail ? log : log.substr(log.size() - kTail);
}

}  // namespace cumulus::cli

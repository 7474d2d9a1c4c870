#include "cli/commands/bench_calls/self.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace cumulus::cli {

absl::StatusOr<pid_t> spawn_self(const std::vector<std::string>& words,
                                 const posix_spawn_file_actions_t* actions, const std::string& what) {
  std::vector<std::string> named = {"cumulus"};
  named.insert(named.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : named) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t process = -1;
  const int error = ::posix_spawn(&process, "/proc/self/exe", actions, nullptr, pointers.data(), environ);
  if (error == 0) return process;
  return absl::InternalError(absl::StrCat(what, ": start: ", std::strerror(error)));
}

absl::Status run_self(const std::vector<std::string>& words) {
  const std::string what = absl::StrCat("cumulus ", absl::StrJoin(words, " "));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const absl::StatusOr<pid_t> process = spawn_self(words, &actions, what);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!process.ok()) return process.status();
  int ended = 0;
  if (::waitpid(*process, &ended, 0) == *process && WIFEXITED(ended) && WEXITSTATUS(ended) == 0)
    return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " failed; run it by itself to see why"));
}

}  // namespace cumulus::cli

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace cumulus::testing {

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The processes that `process` started, by whichever thread, and that still exist: each thread's in their
/// order.
inline std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task", gone)) {
    std::istringstream text(text_of_file(thread.path() / "children"));
    for (pid_t child = 0; text >> child;) children.push_back(child);
  }
  return children;
}

/// Memory of a process and of all that it started, pages that several share counted once.
inline std::size_t memory_of_tree(pid_t process) {
  std::size_t bytes = 0;
  std::istringstream lines(text_of_file("/proc/" + std::to_string(process) + "/smaps_rollup"));
  for (std::string line; std::getline(lines, line);) {
    constexpr std::size_t kKib = 1024;
    if (line.rfind("Pss:", 0) == 0) bytes += std::stoull(line.substr(4)) * kKib;
  }
  for (const pid_t child : children_of(process)) bytes += memory_of_tree(child);
  return bytes;
}

}  // namespace cumulus::testing

#include "tests/end_to_end/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/support/test_data.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const Environment& added) {
  std::vector<std::string> result;
  if (added.count("XDG_CONFIG_HOME") == 0) result.emplace_back("XDG_CONFIG_HOME=/nonexistent");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::string(*entry).find('='));
    if (name != "CUMULUS_SERVER" && name != "XDG_CONFIG_HOME" && added.count(name) == 0)
      result.emplace_back(*entry);
  }
  for (const auto& [name, value] : added) result.push_back(name + "=" + value);
  return result;
}

}  // namespace

Program::Program(const fs::path& program, const std::vector<std::string>& arguments,
                 const Environment& environment) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argument_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = open((folder_ / "output").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int errors = open((folder_ / "errors").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  process_ = fork();
  if (process_ == 0) {
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execve(program.c_str(), argument_pointers.data(), variable_pointers.data());
    _exit(127);
  }
  for (const int file : {input, output, errors}) close(file);
}

Program::~Program() {
  if (!running()) return;
  send(SIGKILL);
  wait();
}

void Program::send(int signal) const {
  if (process_ > 0) kill(process_, signal);
}

bool Program::running() {
  if (process_ > 0 && waitpid(process_, &status_, WNOHANG) == process_) process_ = -1;
  return process_ > 0;
}

Ended Program::wait() {
  if (process_ > 0) {
    waitpid(process_, &status_, 0);
    process_ = -1;
  }
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, read_file(folder_ / "output"), read_file(folder_ / "errors")};
}

std::string Program::errors() const { return read_file(folder_ / "errors"); }

Ended run_cumulus(const std::vector<std::string>& arguments, const Environment& environment) {
  return Program(test_program("cumulus"), arguments, environment).wait();
}

Daemon::Daemon(std::vector<std::string> arguments, const fs::path& program) {
  const std::string port_file = folder_ / "address";
  arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0", "--port-file", port_file});
  if (std::find(arguments.begin(), arguments.end(), "--backend") == arguments.end())
    arguments.insert(arguments.end(), {"--backend", "cpu"});
  program_ = std::make_unique<Program>(program, arguments);
  while (addresses_.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream file(port_file);  // which is renamed into place
    for (std::string line; std::getline(file, line);) addresses_.push_back(line);
    if (addresses_.empty() && !program_->running()) {
      addresses_.emplace_back();
      ADD_FAILURE() << "cumulusd ended: " << program_->wait().errors;
      return;
    }
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace cumulus::testing

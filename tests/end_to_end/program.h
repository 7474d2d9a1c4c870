#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/support/test_data.h"

namespace cumulus::testing {

using Environment = std::map<std::string, std::string>;

/// What a program left behind.
struct Ended {
  int exit_code = -1;  // of a program that a signal ended: 128 + the signal
  std::string output;
  std::string errors;
};

/// A running program, killed at the end if it still runs. Standard input is empty; `environment` is
/// added to this process's, without CUMULUS_SERVER and without
/// its user's configuration file.
class Program {
 public:
  Program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
          const Environment& environment = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// While it runs.
  pid_t id() const { return process_; }
  void send(int signal) const;
  bool running();
  Ended wait();
  /// What it has written to standard error so far.
  std::string errors() const;

 private:
  TemporaryFolder folder_;  // of what it prints
  pid_t process_ = -1;
  int status_ = 0;
};

/// Runs the command line to its end.
Ended run_cumulus(const std::vector<std::string>& arguments, const Environment& environment = {});

/// A cumulusd, the built one or another, on the CPU backend unless `arguments` name one, serving on a free
/// port of 127.0.0.1.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments = {},
                  const std::filesystem::path& program = test_program("cumulusd"));

  /// The first, or another, in the order of `arguments`; that of 127.0.0.1 is the last.
  const std::string& address(std::size_t index = 0) const { return addresses_.at(index); }
  Program& program() { return *program_; }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Program> program_;
  std::vector<std::string> addresses_;
};

std::string read_file(const std::filesystem::path& path);

}  // namespace cumulus::testing

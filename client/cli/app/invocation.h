#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/app/command_line.h"
#include "cli/job/job.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class ParseError;
}

namespace cumulus::cli {

/// All commands, of which one is read with its options and run.
class Invocation {
 public:
  Invocation();
  ~Invocation();

  CLI::App& app() { return *app_; }
  const CLI::App& app() const { return *app_; }

  /// Reads what stands behind "cumulus". Throws what CLI11 throws. "help blur" is "blur --help".
  void read(std::vector<std::string> words);
  /// Likewise, but what the command takes last may stand there several times: returns all of it, in its
  /// order.
  std::vector<std::string> read_several(std::vector<std::string> words);
  /// Of what read() threw: what is wrong, and what would be right.
  std::string explain(const CLI::ParseError& error) const;

  /// The options that every command takes.
  const GlobalOptions& options() const { return options_; }
  /// Of the options that every command takes, one that has been given; empty: none.
  std::string given_global_option() const;

  /// "kd-tree build" where that has been read.
  std::string command() const;
  std::vector<std::string> outputs() const { return line_.outputs(); }
  absl::Status check_outputs() const { return line_.check_outputs(); }
  absl::Status run(Job& job) const {
    const absl::Status safe = line_.check_nothing_is_lost();
    return safe.ok() ? job.conclude(line_.chosen()(job)) : safe;
  }

  /// Of what run() returned: what went wrong, with a field of the request named as the option that the
  /// command has for it.
  std::string explain(const absl::Status& failure) const;

 private:
  /// What is wrong where a command got more words than it takes; else empty.
  std::string words_too_many() const;

  GlobalOptions options_;
  const std::unique_ptr<CLI::App> app_;
  CommandLine line_;
};

}  // namespace cumulus::cli

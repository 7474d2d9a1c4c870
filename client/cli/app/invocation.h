#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/app/command_line.h"
#include "cli/job/job.h"

namespace CLI {
class ParseError;
}

namespace cumulus::cli {

/// All commands, of which one is read with its options and run.
class Invocation {
 public:
  explicit Invocation(const std::string& description = "");
  ~Invocation();

  /// To add options that hold for every command, before read().
  CLI::App& app() { return *app_; }

  /// Reads what stands behind "cumulus". Throws what CLI11 throws.
  void read(std::vector<std::string> words);
  /// Of what read() threw: what is wrong, and what would be right.
  std::string explain(const CLI::ParseError& error) const;

  /// "kd-tree build" where that has been read.
  std::string command() const;
  std::vector<std::string> outputs() const { return line_.outputs(); }
  absl::Status check_outputs() const { return line_.check_outputs(); }
  absl::Status run(Job& job) const {
    const absl::Status safe = line_.check_nothing_is_lost();
    return safe.ok() ? line_.chosen()(job) : safe;
  }

  /// Of what run() returned: what went wrong, with a field of the request named as the option that the
  /// command has for it.
  std::string explain(const absl::Status& failure) const;

 private:
  const std::unique_ptr<CLI::App> app_;
  CommandLine line_;
};

}  // namespace cumulus::cli

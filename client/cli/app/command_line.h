#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/bench_rows.h"
#include "cli/job/job.h"

// CLI11 is compiled into each file that includes it, which takes seconds: files that declare options include
// CLI/App.hpp, the one that makes an App CLI.hpp, and the others neither.
namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
class Option;
}  // namespace CLI

namespace cumulus::cli {

/// What a file that a command writes is, which its name's extension has to say.
enum class OutputFormat { kAny, kImage, kImageOrNpy, kNpy, kNpz, kRunLengths, kJson };

/// The command line while it is being declared and read. Each file of commands/ adds its commands.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& app) : app_(app) {}

  const CLI::App& app() const { return app_; }

  /// Declares a command. `run` does it, after the whole command line has been read. `check` throws a
  /// CLI::ValidationError where options do not go together.
  CLI::App& add(const std::string& name, const std::string& description, RunCommand run,
                std::function<void()> check = nullptr);

  /// Declares a name under which there are commands: "run-length", of "run-length encode".
  CLI::App& add_group(const std::string& name, const std::string& description);
  /// As above, within a group.
  CLI::App& add(CLI::App& group, const std::string& name, const std::string& description, RunCommand run);

  /// Declares an option of `command` that names a file to write. `path` outlives this object.
  CLI::Option& add_output(CLI::App& command, const std::string& names, std::string& path,
                          const std::string& description, OutputFormat format = OutputFormat::kAny);

  /// Declares what `bench` measures of an operation.
  void add_bench_row(BenchRow row) { bench_rows_.push_back(std::move(row)); }
  const std::vector<BenchRow>& bench_rows() const { return bench_rows_; }

  /// What the command that was chosen does.
  const RunCommand& chosen() const { return chosen_; }
  /// What would keep the files that were named from being written, or lose one of them: said before the work,
  /// not after it.
  absl::Status check_outputs() const;
  /// Whether --no-clobber forbids to write any of them.
  absl::Status check_nothing_is_lost() const;
  /// The files that were named to be written.
  std::vector<std::string> outputs() const;

 private:
  struct Output {
    std::string option;
    const std::string* path;
    OutputFormat format;
  };

  CLI::App& app_;
  std::vector<Output> outputs_;  // of all commands
  std::vector<BenchRow> bench_rows_;
  RunCommand chosen_;
};

// One line for each file of commands/.
void add_kd_tree_commands(CommandLine& line);
void add_bracket_match_commands(CommandLine& line);
void add_recursive_filter_commands(CommandLine& line);
void add_run_length_commands(CommandLine& line);
void add_sampling_table_commands(CommandLine& line);
void add_summed_area_table_commands(CommandLine& line);
void add_batch_command(CommandLine& line);
void add_bench_command(CommandLine& line);
void add_server_commands(CommandLine& line);
void add_document_commands(CommandLine& line);

/// All of them.
void add_commands(CommandLine& line);

}  // namespace cumulus::cli

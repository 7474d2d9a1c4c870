#include "cli/app/command_line.h"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "cli/files/extension.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/output.h"

namespace cumulus::cli {
namespace {

/// Where a name says nothing of what it names: a pipe, /dev/null, or standard output without more.
bool says_nothing(const std::string& path) {
  std::error_code error;
  return path == "-" || std::filesystem::is_other(std::filesystem::status(path, error));
}

/// Under another name, nobody would find again what was written.
absl::Status check_extension(const std::string& option, const std::string& path, OutputFormat format) {
  static const std::map<OutputFormat, std::string> kExtensions = {{OutputFormat::kNpy, ".npy"},
                                                                  {OutputFormat::kNpz, ".npz"},
                                                                  {OutputFormat::kRunLengths, ".rle"},
                                                                  {OutputFormat::kJson, ".json"}};
  if (format == OutputFormat::kAny || says_nothing(path)) return absl::OkStatus();
  const auto found = kExtensions.find(format);
  if (found == kExtensions.end()) {
    const bool npy = format == OutputFormat::kImageOrNpy && is_npy(path);
    return npy ? absl::OkStatus() : check_image_name(path);
  }
  if (extension_of(path) == found->second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, ": is ", path, ", and what is written there is a ",
                                                 found->second, " file; end its name with ", found->second));
}

}  // namespace

CLI::App& CommandLine::add(const std::string& name, const std::string& description, RunCommand run,
                           std::function<void()> check) {
  CLI::App* command = app_.add_subcommand(name, description);
  command->final_callback([this, run = std::move(run), check = std::move(check)] {
    if (check) check();
    chosen_ = run;
  });
  return *command;
}

CLI::App& CommandLine::add_group(const std::string& name, const std::string& description) {
  CLI::App* group = app_.add_subcommand(name, description);
  group->require_subcommand(1);
  return *group;
}

CLI::App& CommandLine::add(CLI::App& group, const std::string& name, const std::string& description,
                           RunCommand run) {
  CLI::App* command = group.add_subcommand(name, description);
  command->final_callback([this, run = std::move(run)] { chosen_ = run; });
  return *command;
}

CLI::Option& CommandLine::add_output(CLI::App& command, const std::string& names, std::string& path,
                                     const std::string& description, OutputFormat format) {
  CLI::Option* option =
      command.add_option(names, path, description)->type_name("OUT")->check([](const std::string& name) {
        return name.empty() ? "the name of a file is empty" : "";
      });
  outputs_.push_back({option->get_name(), &path, format});
  return *option;
}

absl::Status CommandLine::check_outputs() const {
  std::vector<const Output*> given;
  for (const Output& output : outputs_) {
    if (output.path->empty()) continue;
    for (const Output* other : given) {
      if (!are_one_file(*other->path, *output.path)) continue;
      const bool same_name = *other->path == *output.path;
      return absl::InvalidArgumentError(
          absl::StrCat(other->option, " and ", output.option, " both name ", *other->path,
                       same_name ? "" : absl::StrCat(", as ", *output.path, " is the same file"),
                       "; give each a file of its own"));
    }
    given.push_back(&output);
  }
  for (const Output* output : given) {
    absl::Status fits = check_output(*output->path);
    if (fits.ok()) fits = check_extension(output->option, *output->path, output->format);
    if (!fits.ok()) return fits;
  }
  return absl::OkStatus();
}

absl::Status CommandLine::check_nothing_is_lost() const {
  for (const Output& output : outputs_) {
    if (output.path->empty()) continue;
    if (absl::Status lost = cli::check_nothing_is_lost(*output.path); !lost.ok()) return lost;
  }
  return absl::OkStatus();
}

std::vector<std::string> CommandLine::outputs() const {
  std::vector<std::string> paths;
  for (const Output& output : outputs_) {
    if (!output.path->empty()) paths.push_back(*output.path);
  }
  return paths;
}

void add_commands(CommandLine& line) {
  add_sampling_table_commands(line);
  add_summed_area_table_commands(line);
  add_recursive_filter_commands(line);
  add_run_length_commands(line);
  add_kd_tree_commands(line);
  add_bracket_match_commands(line);
  add_batch_command(line);
  add_bench_command(line);
  add_server_commands(line);
  add_document_commands(line);
}

}  // namespace cumulus::cli

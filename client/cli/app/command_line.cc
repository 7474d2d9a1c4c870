#include "cli/app/command_line.h"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/output.h"

namespace cumulus::cli {

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
  std::map<std::string, std::string> options;  // by file
  for (const auto& [option, path, format] : outputs_) {
    if (path->empty()) continue;
    if (absl::Status fits = check_output(*path); !fits.ok()) return fits;
    const bool image =
        format == OutputFormat::kImage || (format == OutputFormat::kImageOrNpy && !is_npy(*path));
    if (image) {
      if (absl::Status known = check_image_name(*path); !known.ok()) return known;
    }
    const auto [first, fresh] = options.emplace(*path, option);
    if (!fresh) {
      return absl::InvalidArgumentError(absl::StrCat(first->second, " and ", option, " both name ", *path,
                                                     "; give each a file of its own"));
    }
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

#include "cli/commands.h"

#include <utility>

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

void add_commands(CommandLine& line) {
  add_bracket_match_commands(line);
  add_recursive_filter_commands(line);
  add_run_length_commands(line);
  add_sampling_table_commands(line);
  add_summed_area_table_commands(line);
  add_kd_tree_commands(line);
  add_server_commands(line);
}

}  // namespace cumulus::cli

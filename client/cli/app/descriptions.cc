#include "cli/app/descriptions.h"

#include <absl/strings/str_split.h>

#include <CLI/CLI.hpp>

#include "cli/app/help.h"

namespace cumulus::cli {
namespace {

/// CLI11 tells choices as a part of the value's name: "NAME:{cpu,cuda}".
OptionDescription describe(const CLI::Option& option) {
  OptionDescription described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  described.text = option.get_description();
  if (option.get_items_expected_max() == 0) return described;  // a flag
  const std::string type = option.get_type_name();
  const std::size_t brace = type.find('{');
  if (brace != std::string::npos && type.back() == '}')
    described.choices = absl::StrSplit(type.substr(brace + 1, type.size() - brace - 2), ',');
  described.value = type.substr(0, type.find(':'));
  if (described.value.empty() || described.value.front() == '{') described.value = "VALUE";
  return described;
}

void append(const CLI::App& app, std::vector<CommandDescription>& commands) {
  CommandDescription described{full_name(app), app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) described.inputs.push_back(describe(*option));
  }
  for (const CLI::Option* option : shown_options(app)) described.options.push_back(describe(*option));
  for (const CLI::App* inner : shown_commands(app)) described.commands.push_back(inner->get_name());
  commands.push_back(std::move(described));
  for (const CLI::App* inner : shown_commands(app)) append(*inner, commands);
}

}  // namespace

std::vector<CommandDescription> describe_commands(const CLI::App& app) {
  std::vector<CommandDescription> commands;
  append(app, commands);
  return commands;
}

}  // namespace cumulus::cli

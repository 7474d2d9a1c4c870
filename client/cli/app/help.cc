#include "cli/app/help.h"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>

namespace cumulus::cli {

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const CLI::App* root = app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  const std::string own = app->get_footer();
  std::string footer = own.empty() ? "" : own + "\n";
  if (root != app) footer += make_group("Options of every command", false, shown_options(*root));
  return footer;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([&](const CLI::Option* option) {
    return option->nonpositional() && !option->get_group().empty() && option != app.get_help_ptr();
  });
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr) return "";
  const std::string before = full_name(*parent);
  return before.empty() ? command.get_name() : absl::StrCat(before, " ", command.get_name());
}

}  // namespace cumulus::cli

#pragma once

#include <CLI/App.hpp>  // CLI/FormatterFwd.hpp does not compile alone
#include <string>
#include <vector>

namespace cumulus::cli {

/// Help of a command ends with its examples and with the options that every command takes.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override;
};

/// A line as it is typed, and what it is for.
struct Example {
  const char* command;  // that it belongs to: "kd-tree build"
  const char* line;
  const char* purpose;
};
const std::vector<Example>& examples();

/// Makes them the commands' footers.
void add_examples(CLI::App& app);

/// The options of `app` that a reader is told of, in their order.
std::vector<const CLI::Option*> shown_options(const CLI::App& app);
/// The commands of `app` that a reader is told of, in their order.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);
/// "kd-tree build".
std::string full_name(const CLI::App& command);

}  // namespace cumulus::cli

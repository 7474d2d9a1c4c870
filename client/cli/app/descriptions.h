#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace cumulus::cli {

/// What a reader is told of an option, taken from its declaration.
struct OptionDescription {
  std::vector<std::string> names;    // "-o", "--output"; of what stands without a name: none
  std::string value;                 // "OUT"; empty of a flag
  std::vector<std::string> choices;  // the values that are right, where they are few
  std::string text;
};

/// Likewise of a command.
struct CommandDescription {
  std::string name;  // "kd-tree build"; of the program: empty
  std::string text;
  std::vector<OptionDescription> inputs;
  std::vector<OptionDescription> options;
  std::vector<std::string> commands;  // names within this one: "build", "query", "info"
};

/// The program and all its commands, each behind the one that it belongs to.
std::vector<CommandDescription> describe_commands(const CLI::App& app);

/// A script that completes command lines in "bash", "zsh" or "fish".
std::string completion_script(const std::vector<CommandDescription>& commands, const std::string& shell);

/// The manual page, for man.
std::string manual_page(const std::vector<CommandDescription>& commands, const std::string& version);

}  // namespace cumulus::cli

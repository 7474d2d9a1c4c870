#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "cli/app/descriptions.h"

namespace cumulus::cli {
namespace {

/// As a word of a shell.
std::string shell_word(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string names_of(const std::vector<OptionDescription>& options) {
  std::string names;
  for (const OptionDescription& option : options)
    absl::StrAppend(&names, " ", absl::StrJoin(option.names, " "));
  return names;
}

/// For a shell's case: the values that an option takes, where it says which.
std::string cases_of(const std::vector<OptionDescription>& options, const std::string& indent) {
  std::string cases;
  for (const OptionDescription& option : options) {
    if (option.names.empty() || option.value.empty()) continue;
    absl::StrAppend(&cases, indent, absl::StrJoin(option.names, "|"),
                    ") values=", shell_word(absl::StrJoin(option.choices, " ")), "; takes=1 ;;\n");
  }
  return cases;
}

/// bash and zsh alike: sets `commands`, `options`, `values` and `takes` for the words so far.
std::string lookup(const std::vector<CommandDescription>& commands) {
  const CommandDescription& program = commands.front();
  std::string script = "  case \"$path\" in\n";
  for (const CommandDescription& command : commands) {
    // Those of the program follow for all commands.
    const std::string own_names = command.name.empty() ? "" : names_of(command.options);
    absl::StrAppend(&script, "    ", shell_word(command.name),
                    ")\n      commands=", shell_word(absl::StrJoin(command.commands, " ")),
                    "\n      options=", shell_word(absl::StrCat("--help", own_names)),
                    "\n      case \"$previous\" in\n", cases_of(command.options, "        "),
                    "      esac ;;\n");
  }
  absl::StrAppend(&script, "  esac\n  case \"$previous\" in\n", cases_of(program.options, "    "),
                  "  esac\n");
  absl::StrAppend(&script, "  options=\"$options\"", shell_word(names_of(program.options)), "\n");
  return script;
}

/// The command that the words before the last name: `path`, of the names in `all`.
std::string find_path(const std::vector<CommandDescription>& commands) {
  std::string all;
  for (const CommandDescription& command : commands) absl::StrAppend(&all, "|", command.name);
  return absl::StrCat("  local all=", shell_word(all + "|"),
                      "\n  for word in \"${words_before[@]}\"; do\n"
                      "    next=\"${path:+$path }$word\"\n"
                      "    case \"$all\" in *\"|$next|\"*) path=\"$next\" ;; esac\n  done\n");
}

std::string bash_script(const std::vector<CommandDescription>& commands) {
  return absl::StrCat(
      "# Completion of cumulus for bash, made by cumulus completion bash.\n_cumulus() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" path='' word "
      "next\n"
      "  local commands='' options='' values='' takes=''\n"
      "  local words_before=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n",
      find_path(commands), lookup(commands),
      "  if [ -n \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "  elif [ -n \"$takes\" ]; then COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "  elif [[ $current == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "  elif [ -n \"$commands\" ]; then COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
      "  else COMPREPLY=($(compgen -f -- \"$current\")); fi\n}\n"
      "complete -o filenames -F _cumulus cumulus\n");
}

std::string zsh_script(const std::vector<CommandDescription>& commands) {
  return absl::StrCat(
      "#compdef cumulus\n# Completion of cumulus for zsh, made by cumulus completion zsh.\n_cumulus() {\n"
      "  local current=\"${words[CURRENT]}\" previous=\"${words[CURRENT-1]}\" path_of_command='' word next\n"
      "  local commands='' options='' values='' takes=''\n"
      "  local -a words_before; words_before=(\"${(@)words[2,CURRENT-1]}\")\n",
      // zsh's own `path` is its search path.
      absl::StrReplaceAll(absl::StrCat(find_path(commands), lookup(commands)),
                          {{"$path", "$path_of_command"},
                           {"path=\"", "path_of_command=\""},
                           {"${path:+", "${path_of_command:+"}}),
      "  if [ -n \"$values\" ]; then compadd -- ${=values}\n"
      "  elif [ -n \"$takes\" ]; then _files\n"
      "  elif [[ $current == -* ]]; then compadd -- ${=options}\n"
      "  elif [ -n \"$commands\" ]; then compadd -- ${=commands}\n"
      "  else _files; fi\n}\n_cumulus \"$@\"\n");
}

std::string fish_option(const std::string& condition, const OptionDescription& option) {
  std::string line = absl::StrCat("complete -c cumulus -n ", shell_word(condition));
  for (const std::string& name : option.names)
    absl::StrAppend(&line, name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1));
  if (!option.value.empty())
    line += option.choices.empty() ? " -r" : " -x -a " + shell_word(absl::StrJoin(option.choices, " "));
  return absl::StrCat(line, " -d ", shell_word(option.text), "\n");
}

std::string fish_script(const std::vector<CommandDescription>& commands) {
  std::string script = "# Completion of cumulus for fish, made by cumulus completion fish.\n";
  for (const OptionDescription& option : commands.front().options) script += fish_option("true", option);
  for (const CommandDescription& command : commands) {
    const std::size_t space = command.name.find(' ');
    std::string condition = "__fish_use_subcommand";
    if (!command.name.empty()) condition = "__fish_seen_subcommand_from " + command.name.substr(0, space);
    if (space != std::string::npos)
      absl::StrAppend(&condition, "; and __fish_seen_subcommand_from ", command.name.substr(space + 1));
    for (const std::string& inner : command.commands) {
      absl::StrAppend(&script, "complete -c cumulus -f -n ", shell_word(condition), " -a ", inner, "\n");
    }
    if (command.name.empty()) continue;
    for (const OptionDescription& option : command.options) script += fish_option(condition, option);
  }
  return script;
}

}  // namespace

std::string completion_script(const std::vector<CommandDescription>& commands, const std::string& shell) {
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return bash_script(commands);
}

}  // namespace cumulus::cli

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include "cli/app/descriptions.h"
#include "cli/app/help.h"

namespace cumulus::cli {
namespace {

/// Text in roff: a hyphen is one to be typed, and no line begins with what a request begins with.
std::string roff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!escaped.empty() && (escaped.front() == '.' || escaped.front() == '\'')) escaped.insert(0, "\\&");
  return absl::StrReplaceAll(escaped, {{"\n", "\n.br\n"}});
}

std::string paragraph_of(const OptionDescription& option) {
  const std::string value = option.value.empty() ? "" : absl::StrCat(" \\fI", roff(option.value), "\\fR");
  std::string head = option.names.empty()
                         ? absl::StrCat("\\fI", roff(option.value), "\\fR")
                         : absl::StrCat("\\fB", roff(absl::StrJoin(option.names, ", ")), "\\fR", value);
  std::string text = roff(option.text);
  if (!option.choices.empty()) absl::StrAppend(&text, " (", roff(absl::StrJoin(option.choices, ", ")), ")");
  return absl::StrCat(".TP\n", head, "\n", text, "\n");
}

std::string section_of(const CommandDescription& command) {
  std::string section = absl::StrCat(".SS cumulus ", roff(command.name), "\n", roff(command.text), ".\n");
  for (const OptionDescription& option : command.inputs) section += paragraph_of(option);
  for (const OptionDescription& option : command.options) section += paragraph_of(option);
  for (const Example& example : examples()) {
    if (command.name != example.command) continue;
    absl::StrAppend(&section, ".PP\n.EX\ncumulus ", roff(example.line), "\n.EE\n");
    if (*example.purpose != '\0') absl::StrAppend(&section, roff(example.purpose), "\n");
  }
  return section;
}

}  // namespace

std::string manual_page(const std::vector<CommandDescription>& commands, const std::string& version) {
  const CommandDescription& program = commands.front();
  std::string page =
      absl::StrCat(".TH CUMULUS 1 \"\" \"", roff(version),
                   "\" \"User Commands\"\n.SH NAME\ncumulus \\- tables and filters for renderers\n"
                   ".SH SYNOPSIS\n.B cumulus\n[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
                   ".SH DESCRIPTION\n",
                   roff(program.text), "\n.SH OPTIONS OF EVERY COMMAND\n");
  for (const OptionDescription& option : program.options) page += paragraph_of(option);
  page += ".SH COMMANDS\n";
  for (const CommandDescription& command : commands) {
    if (!command.name.empty() && command.commands.empty()) page += section_of(command);
  }
  page +=
      ".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nthe job failed\n.TP\n2\nthe command line was wrong\n.TP\n3\nno "
      "server\n"
      ".TP\n128 + N\nended by signal N; 130: Ctrl\\-C\n"
      ".SH ENVIRONMENT\n.TP\nCUMULUS_SERVER\nthe server, where neither \\fB\\-\\-server\\fR nor "
      "\\fB\\-\\-backend\\fR is "
      "given\n"
      ".TP\nCUMULUS_TLS_CA, CUMULUS_TLS_CERT, CUMULUS_TLS_KEY, CUMULUS_TOKEN_FILE\nwhat the options of these "
      "names say, where they are not given\n"
      ".TP\nCUMULUS_CONFIG\nthe file with what neither options nor variables say, in place of "
      "~/.config/cumulus/client.conf: lines NAME = VALUE of server, tls_ca, tls_cert, tls_key, token_file\n";
  return page;
}

}  // namespace cumulus::cli

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/app/descriptions.h"

// What the program tells of itself, besides --help.

namespace cumulus::cli {

void add_document_commands(CommandLine& line) {
  const CLI::App& app = line.app();
  const auto asked = std::make_shared<std::vector<std::string>>();
  line.add("help", "What a command does, with all its options: the same as COMMAND --help",
           [](Job&) { return absl::OkStatus(); })  // Invocation::read() has made --help of it
      .add_option("command", *asked, "The command's name")
      ->type_name("COMMAND");

  // For installing, not for readers of --help: they are in no group.
  const auto shell = std::make_shared<std::string>();
  CLI::App& completion =
      line.add("completion", "Print a script that completes command lines", [&app, shell](Job& job) {
        job.print_instead(completion_script(describe_commands(app), *shell));
        return absl::OkStatus();
      });
  completion.group("");
  completion.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  line.add("manual", "Print the manual page, for man",
           [&app](Job& job) {
             job.print_instead(manual_page(describe_commands(app), app.version()));
             return absl::OkStatus();
           })
      .group("");
}

}  // namespace cumulus::cli

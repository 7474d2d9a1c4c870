// What the command line tells of itself.
#include "cli/app/help.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/app/descriptions.h"
#include "cli/app/invocation.h"
#include "cli/batch/expansion.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::cli {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  const absl::StatusOr<std::vector<Word>> split = split_words(line);
  for (const Word& word : split.value()) words.push_back(word.text);
  return words;
}

TEST(Help, ShowsAnExampleOfEveryCommandThatItReads) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::ofstream("jobs.txt") << "health\n";
  std::set<std::string> shown;
  for (const Example& example : examples()) {
    Invocation invocation;
    EXPECT_NO_THROW(invocation.read(words_of(example.line))) << example.line;
    EXPECT_EQ(invocation.command(), example.command) << example.line;
    shown.insert(example.command);
  }
  std::filesystem::current_path(before);
  for (const CommandDescription& command : describe_commands(Invocation().app())) {
    if (command.name.empty() || !command.commands.empty() || command.name == "help") continue;
    EXPECT_TRUE(shown.contains(command.name)) << command.name;
  }
}

TEST(Help, IsAManualOfAllCommandsAndOptions) {
  const auto commands = describe_commands(Invocation().app());
  const std::string page = manual_page(commands, "cumulus 1.2.3");
  EXPECT_GT(commands.size(), 20U);
  EXPECT_NE(page.find(".SS cumulus kd\\-tree query\n"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-wait\\-for\\-server\\fR \\fISECONDS\\fR"), std::string::npos);
  EXPECT_NE(page.find("\\fB\\-\\-projection\\fR"), std::string::npos);
  EXPECT_NE(page.find("(equal\\-area, lat\\-long, plane)"), std::string::npos);
  EXPECT_EQ(page.find("completion"), std::string::npos);  // is for installing
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool request = line.rfind(".TH", 0) == 0 || line.rfind(".S", 0) == 0 || line == ".TP" ||
                         line == ".PP" || line == ".EX" || line == ".EE" || line == ".br" ||
                         line == ".B cumulus";
    EXPECT_TRUE(request || (line.rfind('.', 0) != 0 && line.rfind('\'', 0) != 0)) << line;
  }
}

TEST(Help, IsCompletionOfAllCommandsAndOptions) {
  const auto commands = describe_commands(Invocation().app());
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(commands, shell);
    for (const CommandDescription& command : commands) {
      for (const OptionDescription& option : command.options) {
        const std::string& name = option.names.back();
        EXPECT_NE(script.find(shell == std::string("fish") ? name.substr(2) : name), std::string::npos)
            << shell << name;
      }
    }
  }
}

}  // namespace
}  // namespace cumulus::cli

#include "cli/app/invocation.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <regex>
#include <utility>

#include "cli/app/global_options.h"
#include "cli/app/help.h"
#include "cumulus/errors.h"
#include "proto/unknown_words.h"

namespace cumulus::cli {
namespace {

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* inner : app.get_subcommands())
    absl::StrAppend(&names, " ", inner->get_name(), names_of(*inner));
  return names;
}

bool has_command(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; }).empty();
}

void allow_extras(CLI::App& app) {
  app.allow_extras();
  for (CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) allow_extras(*inner);
}

/// What the command takes last, without a name before it: of kd-tree query the queries.
const CLI::Option* last_positional(const CLI::App& command) {
  const CLI::Option* last = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) last = option;
  }
  return last;
}

/// What to give for an output instead of one file, of the same kind.
std::string place_for_names(const CLI::Option& output) {
  const std::string given =
      output.empty() ? "" : std::filesystem::path(output.results().front()).extension().string();
  static const std::regex kNoPlace("\\{[^{}/]*\\}");  // has_place() knows those that are
  std::smatch wrong;
  const std::string name = output.empty() ? "" : output.results().front();
  if (std::regex_search(name, wrong, kNoPlace))
    return absl::StrCat(
        "; ", wrong.str(), " of ", name,
        " is no place for a part of their names: {stem}, {name}, {ext}, {dir} and {index} are");
  return absl::StrCat(
      "; for a job of each of several inputs give the output a place for their names: -o out/{stem}",
      given.empty() ? ".exr" : given);
}

}  // namespace

Invocation::Invocation()
    : app_(std::make_unique<CLI::App>(
          "Tables and filters for renderers, on a GPU or on the CPU, by a cumulusd.", "cumulus")),
      line_(*app_) {
  app_->require_subcommand(1);
  app_->fallthrough();  // inherited by the commands: options for all of them may follow a command's own
  app_->formatter(std::make_shared<HelpFormatter>());  // inherited, too
  add_global_options(*app_, options_);
  add_commands(line_);
  add_examples(*app_);
}

Invocation::~Invocation() = default;

void Invocation::read(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    if (words.empty() || has_command(*app_, words.front())) words.emplace_back("--help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app_->parse(std::move(words));
}

std::vector<std::string> Invocation::read_several(std::vector<std::string> words) {
  allow_extras(*app_);
  read(std::move(words));
  const CLI::Option* last = last_positional(unknown_words::innermost(*app_));
  std::vector<std::string> several = last == nullptr ? std::vector<std::string>() : last->results();
  for (std::string& more : app_->remaining(true)) several.push_back(std::move(more));
  return several;
}

std::string Invocation::words_too_many() const {
  const CLI::App& command = unknown_words::innermost(*app_);
  const std::vector<std::string> words = app_->remaining(true);
  const auto is_option = [](const std::string& word) { return absl::StartsWith(word, "-"); };
  if (words.empty() || std::any_of(words.begin(), words.end(), is_option) ||
      last_positional(command) == nullptr)
    return "";
  const CLI::Option* output = command.get_option_no_throw("--output");
  return absl::StrCat(words.front(), " is one word too many",
                      words.size() > 1 ? absl::StrCat(", and ", words.size() - 1, " more follow") : "",
                      output != nullptr ? place_for_names(*output) : "");
}

std::string Invocation::explain(const CLI::ParseError& error) const {
  if (const std::string sentence = words_too_many(); !sentence.empty())
    return absl::StrCat(sentence, "; cumulus", names_of(*app_), " --help tells what is possible");
  return absl::StrCat(unknown_words::explain(*app_, error), "; cumulus", names_of(*app_),
                      " --help tells what is possible");
}

std::string Invocation::given_global_option() const {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() > 0) return option->get_name();
  }
  return "";
}

std::string Invocation::command() const {
  const std::string names = names_of(*app_);
  return names.empty() ? names : names.substr(1);
}

std::string Invocation::explain(const absl::Status& failure) const {
  const std::vector<FieldViolation> violations = field_violations(failure);
  if (!violations.empty()) {
    std::string option = "--" + violations.front().field;
    std::replace(option.begin(), option.end(), '_', '-');
    if (unknown_words::innermost(*app_).get_option_no_throw(option) != nullptr)
      return option + ": " + violations.front().description;
  }
  if (is_server_gone(failure)) return lost_server(failure);
  return std::string(failure.message());
}

}  // namespace cumulus::cli

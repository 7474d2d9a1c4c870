#include "cli/app/invocation.h"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "cli/app/checks.h"
#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* inner : app.get_subcommands())
    absl::StrAppend(&names, " ", inner->get_name(), names_of(*inner));
  return names;
}

/// Of a status that the network made, not the server.
std::string lost_server(const absl::Status& status) {
  return "the server ended, or cannot be reached any more; run the command again once it serves (" +
         std::string(status.message()) + ")";
}

}  // namespace

Invocation::Invocation(const std::string& description)
    : app_(std::make_unique<CLI::App>(description, "cumulus")), line_(*app_) {
  app_->require_subcommand(1);
  app_->fallthrough();  // inherited by the commands: options for all of them may follow a command's own
  add_commands(line_);
}

Invocation::~Invocation() = default;

void Invocation::read(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  app_->parse(std::move(words));
}

std::string Invocation::explain(const CLI::ParseError& error) const {
  return absl::StrCat(cli::explain(*app_, error), "; cumulus", names_of(*app_),
                      " --help tells what is possible");
}

std::string Invocation::command() const {
  const std::string names = names_of(*app_);
  return names.empty() ? names : names.substr(1);
}

std::string Invocation::explain(const absl::Status& failure) const {
  if (absl::IsUnavailable(failure) && error_reason(failure).empty()) return lost_server(failure);
  const std::vector<FieldViolation> violations = field_violations(failure);
  if (!violations.empty()) {
    std::string option = "--" + violations.front().field;
    std::replace(option.begin(), option.end(), '_', '-');
    if (innermost(*app_).get_option_no_throw(option) != nullptr)
      return option + ": " + violations.front().description;
  }
  return std::string(failure.message());
}

}  // namespace cumulus::cli

#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <CLI/Option.hpp>
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

// What both programs say of a word of their command line that they do not know.

namespace cumulus::unknown_words {

/// Letters to insert, delete or replace to make one of the other.
inline std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// "; was --listen meant?", and "" where no name is near.
inline std::string guess(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxEdits = 2;
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return edits_between(word, a) < edits_between(word, b);
      });
  if (nearest == names.end() || edits_between(word, *nearest) > kMaxEdits) return "";
  return "; was " + *nearest + " meant?";
}

inline std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

inline std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names.push_back(option->get_name());
  }
  return names;
}

/// The command that has been read: that of `kd-tree build` is "build".
inline const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> inner = app.get_subcommands();
  return inner.empty() ? app : innermost(*inner.front());
}

/// What is wrong with a command line that CLI11 refused with `error`: first of all a word that is unknown,
/// with what it may have been meant to be. Of two, the first: a value follows its option.
inline std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  const CLI::App& command = innermost(app);
  const std::vector<std::string> commands = command_names(command);
  const std::vector<std::string> unknown = app.remaining(true);
  if (!commands.empty() && !unknown.empty() && !is_option(unknown.front()))
    return "there is no command " + unknown.front() + guess(unknown.front(), commands);
  const auto option = std::find_if(unknown.begin(), unknown.end(), is_option);
  if (option != unknown.end()) {
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> names = option_names(command);
    for (const std::string& global : option_names(app)) names.push_back(global);
    return "there is no option " + name + guess(name, names);
  }
  if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return "a command is missing: " + CLI::detail::join(commands, ", ");
  return error.what();
}

}  // namespace cumulus::unknown_words

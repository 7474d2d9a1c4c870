#include "cli/app/checks.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace cumulus::cli {
namespace {

/// "0.5 to 10000", "at least 1".
template <class T>
std::string range_text(T least, T greatest) {
  if (least == std::numeric_limits<T>::lowest() && greatest == std::numeric_limits<T>::max()) return "finite";
  if (greatest == std::numeric_limits<T>::max()) return absl::StrCat("at least ", least);
  return absl::StrCat(least, " to ", greatest);
}

std::string wrong(const std::string& text, const std::string& right) {
  return absl::StrCat("is ", text.empty() ? "empty" : text, "; ", right, " is right");
}

/// Letters to insert, delete or replace to make one of the other.
std::size_t edits_between(const std::string& a, const std::string& b) {
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

std::string guess(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::size_t kMostEdits = 2;
  const auto nearest =
      std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return edits_between(word, a) < edits_between(word, b);
      });
  if (nearest == names.end() || edits_between(word, *nearest) > kMostEdits) return "";
  return absl::StrCat("; was ", *nearest, " meant?");
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names.push_back(option->get_name());
  }
  return names;
}

}  // namespace

const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> inner = app.get_subcommands();
  return inner.empty() ? app : innermost(*inner.front());
}

CLI::Validator number_within(double least, double greatest) {
  const std::string range = range_text(least, greatest);
  return {[=](const std::string& text) {
            double value = 0;
            const bool fits =
                absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= least && value <= greatest;
            return fits ? std::string() : wrong(text, absl::StrCat("a number, ", range, ","));
          },
          range};
}

CLI::Validator whole_number_within(std::int64_t least, std::int64_t greatest) {
  const std::string range = range_text(least, greatest);
  return {[=](const std::string& text) {
            std::int64_t value = 0;
            const bool fits = absl::SimpleAtoi(text, &value) && value >= least && value <= greatest;
            return fits ? std::string() : wrong(text, absl::StrCat("a whole number, ", range, ","));
          },
          range};
}

CLI::Validator one_of(const std::map<std::string, int>& names) {
  return {[names](std::string& text) {
            const auto found = names.find(text);
            if (found == names.end()) {
              return wrong(
                  text,
                  absl::StrCat("one of ", absl::StrJoin(names, ", ", [](std::string* out, const auto& name) {
                                 *out += name.first;
                               })));
            }
            text = absl::StrCat(found->second);
            return std::string();
          },
          absl::StrCat(
              "{", absl::StrJoin(names, ",", [](std::string* out, const auto& name) { *out += name.first; }),
              "}")};
}

std::vector<std::string> list_of(const std::string& name, const std::string& word, std::size_t most,
                                 const CLI::Validator& each) {
  std::vector<std::string> values = absl::StrSplit(word, ',');
  if (values.size() > most) {
    throw CLI::ValidationError(
        name, absl::StrCat("is ", word, ": ", values.size(), " values; at most ", most, " are right"));
  }
  for (std::string& value : values) {
    const std::string problem = each(value);
    if (!problem.empty()) throw CLI::ValidationError(name, problem);
  }
  return values;
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::vector<std::string> commands = command_names(command);
  std::vector<std::string> unknown = app.remaining(true);
  const auto options = std::stable_partition(unknown.begin(), unknown.end(), [](const std::string& word) {
    return word.size() < 2 || word.front() != '-';
  });
  if (!commands.empty() && options != unknown.begin())
    return absl::StrCat("there is no command ", unknown.front(), guess(unknown.front(), commands));
  if (options != unknown.end()) {
    const std::string name = options->substr(0, options->find('='));
    std::vector<std::string> names = option_names(command);
    for (const std::string& global : option_names(app)) names.push_back(global);
    return absl::StrCat("there is no option ", name, guess(name, names));
  }
  if (!commands.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    return "a command is missing: " + absl::StrJoin(commands, ", ");
  return error.what();
}

}  // namespace cumulus::cli

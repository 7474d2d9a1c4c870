#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

// What an option's value has to be. The errors read "--sigma: is 8px; a number from 0.5 to 10000 is right".

namespace cumulus::cli {

/// A number that is finite and from `least` to `greatest`.
CLI::Validator number_within(double least, double greatest = std::numeric_limits<double>::max());

/// A whole number from `least` to `greatest`.
CLI::Validator whole_number_within(std::int64_t least,
                                   std::int64_t greatest = std::numeric_limits<std::int64_t>::max());

/// One of `names`, which becomes the number that belongs to it.
CLI::Validator one_of(const std::map<std::string, int>& names);
template <class Enum>
CLI::Validator one_of(const std::map<std::string, Enum>& names) {
  std::map<std::string, int> numbers;
  for (const auto& [name, value] : names) numbers.emplace(name, static_cast<int>(value));
  return one_of(numbers);
}

/// The command that has been read: that of `kd-tree build` is "build".
const CLI::App& innermost(const CLI::App& app);

/// What is wrong with a command line that CLI11 refused with `error`: first of all a word that is unknown,
/// with what it may have been meant to be.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cumulus::cli

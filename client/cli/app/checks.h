#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

/// What one word holds between its commas, each as `each` leaves it. Throws a CLI::ValidationError of the
/// option `name` for what `each` refuses and for more than `most`.
std::vector<std::string> list_of(const std::string& name, const std::string& word, std::size_t most,
                                 const CLI::Validator& each);

/// Declares an option of one word, "A,B,...", for up to `most` values: a vector of CLI11 would take the words
/// behind it too, among them the command's input.
template <class T>
CLI::Option& add_list(CLI::App& command, const std::string& name, std::vector<T>& values, std::size_t most,
                      const CLI::Validator& each, const std::string& description) {
  return *command.add_option_function<std::string>(
      name,
      [&values, name, most, each](const std::string& word) {
        std::vector<T> read;
        for (const std::string& text : list_of(name, word, most, each)) {
          if (!CLI::detail::lexical_cast(text, read.emplace_back()))
            throw CLI::ValidationError(name, "is " + text);
        }
        values = std::move(read);
      },
      description);
}

}  // namespace cumulus::cli

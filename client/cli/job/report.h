#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cumulus::cli {

/// A JSON string, with its quotes: valid UTF-8, with U+FFFD for each byte of `text` that is none.
std::string quoted_in_json(const std::string& text);

/// What a command tells at its end: named values in the order in which they were added. Printed as one
/// JSON object for programs, or as lines for people.
class Report {
 public:
  void add(std::string name, std::string text) { fields_.push_back({std::move(name), std::move(text)}); }
  void add(std::string name, const char* text) { add(std::move(name), std::string(text)); }
  void add(std::string name, double number) { fields_.push_back({std::move(name), number}); }
  void add(std::string name, bool truth) { fields_.push_back({std::move(name), truth}); }
  template <std::integral Integer>
  void add(std::string name, Integer number) {
    fields_.push_back({std::move(name), static_cast<std::int64_t>(number)});
  }
  void add(std::string name, std::vector<std::string> texts) {
    fields_.push_back({std::move(name), std::move(texts)});
  }
  void add(std::string name, std::vector<std::int64_t> numbers) {
    fields_.push_back({std::move(name), std::move(numbers)});
  }
  void add(std::string name, std::vector<double> numbers) {
    fields_.push_back({std::move(name), std::move(numbers)});
  }
  void add(std::string name, Report part) {
    add(std::move(name), std::vector<Report>{std::move(part)}, false);
  }
  void add(std::string name, std::vector<Report> parts) { add(std::move(name), std::move(parts), true); }

  /// One line, without a line break at its end.
  std::string to_json() const;

  /// A line for each value, and for each element of a list of parts; the names in a column of their own.
  std::string to_text() const;

 private:
  struct Parts {
    std::vector<Report> reports;
    bool list;  // a JSON array, even of one
  };
  using Value = std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>,
                             std::vector<std::int64_t>, std::vector<double>, Parts>;
  struct Field {
    std::string name;
    Value value;
  };

  void add(std::string name, std::vector<Report> parts, bool list) {
    fields_.push_back({std::move(name), Parts{std::move(parts), list}});
  }
  static std::string value_to_json(const Value& value);
  static std::string value_to_text(const Value& value);
  std::string to_phrase() const;

  std::vector<Field> fields_;
};

}  // namespace cumulus::cli

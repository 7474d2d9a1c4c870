#include "cli/job/report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace cumulus::cli {

namespace {

/// How many bytes a character of UTF-8 takes that `text` begins with; 0 where it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  // Longer forms of shorter characters, halves of pairs, and what lies beyond the last character.
  const unsigned second = byte(1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return wrong ? 0 : bytes;
}

/// With as many digits as tell this double from all others.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";  // JSON has no infinity
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string words(const std::string& name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // Clang 14 does not deduce it by itself

}  // namespace

std::string quoted_in_json(const std::string& text) {
  std::string quoted = "\"";
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t bytes = character_bytes(rest);
    const char c = rest.front();
    if (bytes == 0) {
      quoted += "\\uFFFD";  // names of files may be of any bytes
    } else if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted += rest.substr(0, bytes);
    }
    rest.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return quoted + '"';
}

std::string Report::value_to_json(const Value& value) {
  return std::visit(
      Overloaded{
          [](const std::string& text) { return quoted_in_json(text); },
          [](std::int64_t integer) { return absl::StrCat(integer); },
          [](double real) { return number(real); },
          [](bool truth) { return std::string(truth ? "true" : "false"); },
          [](const std::vector<std::string>& texts) {
            return absl::StrCat("[",
                                absl::StrJoin(texts, ",",
                                              [](std::string* out, const std::string& text) {
                                                *out += quoted_in_json(text);
                                              }),
                                "]");
          },
          [](const std::vector<std::int64_t>& numbers) {
            return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
          },
          [](const std::vector<double>& numbers) {
            return absl::StrCat(
                "[", absl::StrJoin(numbers, ",", [](std::string* out, double real) { *out += number(real); }),
                "]");
          },
          [](const Parts& parts) {
            if (!parts.list) return parts.reports.front().to_json();
            return absl::StrCat(
                "[",
                absl::StrJoin(parts.reports, ",",
                              [](std::string* out, const Report& part) { *out += part.to_json(); }),
                "]");
          },
      },
      value);
}

std::string Report::value_to_text(const Value& value) {
  return std::visit(Overloaded{
                        [](const std::string& text) { return text; },
                        [](std::int64_t integer) { return absl::StrCat(integer); },
                        [](double real) { return absl::StrFormat("%.4g", real); },
                        [](bool truth) { return std::string(truth ? "yes" : "no"); },
                        [](const std::vector<std::string>& texts) { return absl::StrJoin(texts, ", "); },
                        [](const std::vector<std::int64_t>& numbers) { return absl::StrJoin(numbers, " "); },
                        [](const std::vector<double>& numbers) { return absl::StrJoin(numbers, " "); },
                        [](const Parts& parts) {
                          return absl::StrJoin(parts.reports, "\n", [](std::string* out, const Report& part) {
                            *out += part.to_phrase();
                          });
                        },
                    },
                    value);
}

std::string Report::to_json() const {
  return absl::StrCat("{",
                      absl::StrJoin(fields_, ",",
                                    [](std::string* out, const Field& field) {
                                      absl::StrAppend(out, quoted_in_json(field.name), ":",
                                                      value_to_json(field.value));
                                    }),
                      "}");
}

std::string Report::to_text() const {
  std::size_t column = 0;
  for (const Field& field : fields_) column = std::max(column, field.name.size() + 2);
  const std::string next_line = absl::StrCat("\n", std::string(column, ' '));
  std::string lines;
  for (const Field& field : fields_) {
    absl::StrAppendFormat(&lines, "%-*s%s\n", static_cast<int>(column), words(field.name),
                          absl::StrReplaceAll(value_to_text(field.value), {{"\n", next_line}}));
  }
  return lines;
}

std::string Report::to_phrase() const {
  return absl::StrJoin(fields_, ", ", [](std::string* out, const Field& field) {
    absl::StrAppend(out, words(field.name), " ", value_to_text(field.value));
  });
}

}  // namespace cumulus::cli

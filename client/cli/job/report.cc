#include "cli/job/report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cmath>

namespace cumulus::cli {

std::string quoted_in_json(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += absl::StrFormat("\\u%04x", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

namespace {

std::string number(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.6g", value) : "null";  // JSON has no infinity
}

std::string words(const std::string& name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // Clang 14 does not deduce it by itself

}  // namespace

std::string Report::value_to_json(const Value& value) {
  return std::visit(Overloaded{
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
                        [](const Parts& parts) {
                          if (!parts.list) return parts.reports.front().to_json();
                          return absl::StrCat("[",
                                              absl::StrJoin(parts.reports, ",",
                                                            [](std::string* out, const Report& part) {
                                                              *out += part.to_json();
                                                            }),
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

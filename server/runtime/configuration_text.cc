// The configuration's file: protobuf's text format.
#include <absl/strings/str_join.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "proto/unknown_words.h"
#include "server/pipeline/text.h"
#include "server/runtime/configuration.h"

namespace cumulus::server {
namespace {

using config::v1::ServerConfig;
using google::protobuf::TextFormat;

/// The text between the quotes that come `skip` quoted words later than the first.
std::string quoted(std::string_view message, int skip = 0) {
  std::size_t begin = message.find('"');
  for (int i = 0; i < 2 * skip && begin != std::string_view::npos; ++i) begin = message.find('"', begin + 1);
  if (begin == std::string_view::npos) return {};
  return std::string(message.substr(begin + 1, message.find('"', begin + 1) - begin - 1));
}

/// Of 'Message type "X" has no field named "Y".': the field that is meant, or those that there are.
std::string fields_instead(std::string_view message) {
  const auto* type = ServerConfig::descriptor()->file()->pool()->FindMessageTypeByName(quoted(message));
  if (type == nullptr) return {};
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  const std::string guess = unknown_words::guess(quoted(message, 1), names);
  return guess.empty() ? concat("; it has ", absl::StrJoin(names, ", ")) : guess;
}

/// Of 'Unknown enumeration value of "X" for field "Y".': the values that there are.
std::string values_instead(std::string_view message) {
  const auto* file = ServerConfig::descriptor()->file();
  const std::string name = quoted(message, 1);
  const auto values_in = [&](const google::protobuf::Descriptor& type) -> std::string {
    const auto* field = type.FindFieldByName(name);
    if (field == nullptr || field->enum_type() == nullptr) return {};
    std::vector<std::string> names;  // the first stands for one that is left out
    for (int i = 1; i < field->enum_type()->value_count(); ++i)
      names.push_back(field->enum_type()->value(i)->name());
    return concat("; use ", absl::StrJoin(names, " or "));
  };
  std::string found;
  for (int i = 0; i < file->message_type_count() && found.empty(); ++i) {
    const auto& type = *file->message_type(i);
    found = values_in(type);
    // The entries of maps.
    for (int j = 0; j < type.nested_type_count() && found.empty(); ++j)
      found = values_in(*type.nested_type(j));
  }
  return found;
}

/// What protobuf's errors leave unsaid: what would be right.
std::string instead(std::string_view message) {
  if (message.find("has no field named") != std::string_view::npos) return fields_instead(message);
  if (message.starts_with("Unknown enumeration value")) return values_instead(message);
  if (message.starts_with("Expected \"{\""))
    return "; in braces: a duration is { seconds: 30 } or { nanos: 500000000 }";
  if (message.starts_with("Need space between number"))
    return "; numbers have no units: bytes are 1073741824, a duration is { seconds: 30 }";
  if (message.starts_with("Expected string")) return "; text is in quotes, \"127.0.0.1:9464\"";
  if (message.starts_with("Expected integer") || message.starts_with("Expected double"))
    return "; numbers are in no quotes";
  if (message.starts_with("Invalid value for boolean")) return "; use true or false";
  return {};
}

class ParseErrors final : public google::protobuf::io::ErrorCollector {
 public:
  explicit ParseErrors(std::string_view file) : file_(file) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    // Its full stop would stand before what is added.
    std::string_view said = message;
    if (said.ends_with('.')) said.remove_suffix(1);
    lines_.push_back(concat(file_, ":", line + 1, ":", column + 1, ": ", said, instead(message)));
  }
  std::string text() const { return absl::StrJoin(lines_, "\n"); }

 private:
  const std::string_view file_;
  std::vector<std::string> lines_;
};

/// The lines of a map's entries, in their order.
std::vector<int> lines_of(const TextFormat::ParseInfoTree& places, std::string_view message,
                          std::string_view map) {
  const auto* field = ServerConfig::descriptor()->FindFieldByName(std::string(message));
  const auto* entries = field->message_type()->FindFieldByName(std::string(map));
  const TextFormat::ParseInfoTree* inside = places.GetTreeForNested(field, -1);
  std::vector<int> lines;
  if (inside == nullptr) return lines;
  for (int i = 0; inside->GetLocation(entries, i).line >= 0; ++i)
    lines.push_back(inside->GetLocation(entries, i).line + 1);
  return lines;
}

/// Of two entries of a map with one name, protobuf keeps the last without a word.
absl::Status check_names(std::string_view file, const TextFormat::ParseInfoTree& places,
                         const ServerConfig& config) {
  const auto check = [&](std::string_view message, std::string_view map, std::size_t names) {
    const std::vector<int> lines = lines_of(places, message, map);
    if (lines.size() == names) return absl::OkStatus();
    return absl::InvalidArgumentError(concat(file, ":", lines.back(), ": ", message, ".", map, " has ",
                                             lines.size(), " entries (lines ", absl::StrJoin(lines, ", "),
                                             ") of ", names, " names; one entry a name is right"));
  };
  const absl::Status overrides = check("principals", "overrides", config.principals().overrides().size());
  if (!overrides.ok()) return overrides;
  return check("identity", "certificate_roles", config.identity().certificate_roles().size());
}

}  // namespace

absl::StatusOr<ServerConfig> parse_server_config(std::string_view text, std::string_view file) {
  ParseErrors errors(file);
  TextFormat::Parser parser;
  TextFormat::ParseInfoTree places;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&places);
  ServerConfig config;
  if (!parser.ParseFromString(std::string(text), &config)) return absl::InvalidArgumentError(errors.text());
  const absl::Status each_once = check_names(file, places, config);
  if (!each_once.ok()) return each_once;
  return config;
}

absl::StatusOr<ServerConfig> load_server_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(concat(path, ": ", std::strerror(errno), "; --config takes a file"));
  if (std::filesystem::is_directory(path))
    return absl::InvalidArgumentError(concat(path, ": is a folder; --config takes a file"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // as some editors begin a file
  const bool marked = std::string_view(text).substr(0, kByteOrderMark.size()) == kByteOrderMark;
  return parse_server_config(std::string_view(text).substr(marked ? kByteOrderMark.size() : 0), path);
}

}  // namespace cumulus::server

// The configuration's file: protobuf's text format.
#include <absl/strings/str_join.h>
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

#include "server/pipeline/text.h"
#include "server/runtime/configuration.h"

namespace cumulus::server {
namespace {

using config::v1::ServerConfig;
using google::protobuf::TextFormat;

class ParseErrors final : public google::protobuf::io::ErrorCollector {
 public:
  explicit ParseErrors(std::string_view file) : file_(file) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    lines_.push_back(concat(file_, ":", line + 1, ":", column + 1, ": ", message));
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

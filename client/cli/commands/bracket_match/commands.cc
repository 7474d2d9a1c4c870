#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/command_line.h"
#include "cli/commands/bracket_match/clips.h"
#include "cli/commands/bracket_match/tokens.h"
#include "cli/files/extension.h"
#include "cli/files/input.h"
#include "cli/files/npz.h"
#include "cumulus/bracket_match.h"

namespace cumulus::cli {
namespace {

constexpr std::size_t kShownLevels = 24;
constexpr std::size_t kShownPaths = 48;
constexpr std::array kIndexedOutputs = {"partner", "parent", "depth"};

struct Options {
  std::string input;
  std::string output;
  std::string syntax;
  std::string pairs;
  bool lenient = false;
};

/// What the file holds, and what of it is matched: its tokens, or else its bytes.
struct Document {
  std::string text;
  std::string syntax;
  std::optional<NestingTokens> tokens;

  ArrayView elements() const {
    if (tokens.has_value()) return ArrayView(tokens->kinds);
    const auto bytes = std::as_bytes(std::span(text));
    return {ElementType::kUint8, bytes, {static_cast<std::int64_t>(bytes.size())}};
  }
  std::int64_t offset(std::int64_t element) const {
    if (!tokens.has_value()) return element;
    const auto count = static_cast<std::int64_t>(tokens->offsets.size());
    return element < count ? tokens->offsets[static_cast<std::size_t>(element)]
                           : static_cast<std::int64_t>(text.size());
  }
  std::string place(std::int64_t element) const { return line_and_column(text, offset(element)); }
  /// How the document writes a byte, or a token of this kind.
  std::string spell(std::int32_t symbol) const {
    if (!tokens.has_value()) return absl::StrCat("'", std::string(1, static_cast<char>(symbol)), "'");
    const std::string& name = tokens->vocabulary[static_cast<std::size_t>(std::abs(symbol) - 1)];
    if (syntax == "xml") return absl::StrCat(symbol < 0 ? "</" : "<", name, ">");
    return name == "object" ? (symbol < 0 ? "'}'" : "'{'") : (symbol < 0 ? "']'" : "'['");
  }
};

/// As the options or the input's name have it; empty where they do not say.
std::string named_syntax(const Options& options) {
  if (!options.syntax.empty()) return options.syntax;
  const std::string extension = extension_of(options.input);
  if (extension == ".svg" || extension == ".xml") return "xml";
  return extension == ".json" ? "json" : "";
}

std::string syntax_of(const Options& options, const std::string& text) {
  const std::string named = named_syntax(options);
  if (!named.empty()) return named;
  const bool begins_as_xml = absl::StartsWith(text, "<?xml") || absl::StartsWith(text, "<svg");
  return begins_as_xml && options.pairs.empty() ? "xml" : "brackets";
}

absl::StatusOr<Document> read_document(const Options& options) {
  absl::StatusOr<std::string> text = read_text(options.input);
  if (!text.ok()) return text.status();
  Document document;
  document.text = *std::move(text);
  document.syntax = syntax_of(options, document.text);
  if (document.syntax == "brackets") return document;
  absl::StatusOr<NestingTokens> tokens =
      document.syntax == "xml" ? tokenize_xml(document.text) : tokenize_json(document.text);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.input, ":", std::string(tokens.status().message())));
  }
  document.tokens = *std::move(tokens);
  return document;
}

/// The server numbers elements; people look for lines.
absl::Status explain(const absl::Status& status, const Options& options, const Document& document) {
  if (error_reason(status) != "UNBALANCED_BRACKETS") return status;
  std::map<std::string, std::string> facts = error_metadata(status);
  const auto number = [&](const char* name) { return std::stoll(facts[name]); };
  const auto spell = [&](const char* name) {
    return document.spell(static_cast<std::int32_t>(number(name)));
  };
  std::string text = absl::StrCat(options.input, ":", document.place(number("position")), ": ",
                                  facts.contains("found") ? spell("found") : "the end");
  if (!facts.contains("expected")) {
    absl::StrAppend(&text, " closes nothing; take it out, or open something before it");
  } else {
    absl::StrAppend(&text, " where ", spell("expected"), " is right, to close what opens at ",
                    document.place(number("open_position")));
  }
  return absl::FailedPreconditionError(text);
}

struct Nesting {
  std::array<Array, kIndexedOutputs.size()> arrays;
  std::int64_t maximum_depth = 0;
  std::optional<std::int64_t> unmatched;
};

absl::StatusOr<Nesting> match(Job& job, const Options& options, const Document& document) {
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, document.elements());
  if (!buffer.ok()) return buffer.status();
  BracketMatchOptions wanted;
  wanted.pairs = options.pairs;
  wanted.lenient = options.lenient;
  wanted.outputs = {BracketOutput::kPartner, BracketOutput::kParent, BracketOutput::kDepth,
                    BracketOutput::kMaximumDepth};
  const absl::StatusOr<Result> result = job.run(*session, "compute", match_brackets(*buffer, wanted));
  if (!result.ok()) return explain(result.status(), options, document);
  Nesting nesting;
  for (std::size_t i = 0; i < kIndexedOutputs.size(); ++i) {
    absl::StatusOr<Array> array = job.download(*session, *result, kIndexedOutputs[i]);
    if (!array.ok()) return array.status();
    nesting.arrays[i] = *std::move(array);
  }
  const auto depth = job.download_number<std::int64_t>(*session, *result, "maximum_depth");
  if (!depth.ok()) return depth.status();
  nesting.maximum_depth = *depth;
  if (options.lenient) {
    const auto unmatched = job.download_number<std::int64_t>(*session, *result, "unmatched");
    if (!unmatched.ok()) return unmatched.status();
    nesting.unmatched = *unmatched;
  }
  return nesting;
}

absl::Status write_nesting(Job& job, const std::string& path, const Document& document,
                           const Nesting& nesting) {
  std::vector<std::pair<std::string, ArrayView>> arrays;
  for (std::size_t i = 0; i < kIndexedOutputs.size(); ++i)
    arrays.emplace_back(kIndexedOutputs[i], nesting.arrays[i].view());
  if (document.tokens.has_value()) {
    arrays.emplace_back("kind", ArrayView(document.tokens->kinds));
    arrays.emplace_back("offset", ArrayView(document.tokens->offsets));
  }
  job.stages().begin("write");
  absl::Status status = write_npz(path, arrays);
  job.stages().end();
  return status;
}

/// An element that nothing encloses more deeply, with all that enclose it, outermost first.
template <class Index>
std::vector<std::string> deepest_path(const Document& document, std::span<const Index> parent,
                                      std::span<const Index> depth) {
  std::vector<std::string> path;
  const auto deepest = std::max_element(depth.begin(), depth.end());
  if (deepest == depth.end()) return path;
  for (auto i = static_cast<std::int64_t>(deepest - depth.begin()); i >= 0;
       i = parent[static_cast<std::size_t>(i)]) {
    const auto element = static_cast<std::size_t>(i);
    const std::string name = document.tokens.has_value()
                                 ? document.tokens->name(element)
                                 : document.spell(static_cast<unsigned char>(document.text[element]));
    path.push_back(absl::StrCat(name, " ", document.place(i)));
  }
  std::reverse(path.begin(), path.end());
  if (path.size() > kShownLevels) {
    path.erase(path.begin() + kShownLevels / 2, path.end() - kShownLevels / 2);
    path.insert(path.begin() + kShownLevels / 2, "...");
  }
  return path;
}

/// The names that enclose each other, as paths in the order of their first element, and how often each
/// occurs.
template <class Index>
std::vector<Report> count_by_path(const NestingTokens& tokens, std::span<const Index> parent) {
  struct Path {
    std::string text;
    std::int64_t count;
  };
  std::vector<Path> paths;
  std::map<std::pair<std::int64_t, std::int32_t>, std::size_t> numbers;  // by the path around, and the name
  std::vector<std::int64_t> path_of(parent.size(), -1);
  for (std::size_t i = 0; i < parent.size(); ++i) {
    if (tokens.kinds[i] < 0) continue;
    const std::int64_t outer = parent[i] < 0 ? -1 : path_of[static_cast<std::size_t>(parent[i])];
    const auto [entry, fresh] = numbers.try_emplace({outer, tokens.names[i]}, paths.size());
    if (fresh) {
      const std::string around = outer < 0 ? "" : paths[static_cast<std::size_t>(outer)].text + "/";
      paths.push_back({absl::StrCat(around, tokens.name(i)), 0});
    }
    ++paths[entry->second].count;
    path_of[i] = static_cast<std::int64_t>(entry->second);
  }
  std::vector<Report> lines;
  for (const Path& path : paths) {
    if (lines.size() == kShownPaths) break;
    Report& line = lines.emplace_back();
    line.add("path", path.text);
    line.add("elements", path.count);
  }
  return lines;
}

template <class Index>
absl::Status describe_nesting(Job& job, const Document& document, const Nesting& nesting) {
  const auto parent = nesting.arrays[1].values<Index>();
  const auto depth = nesting.arrays[2].values<Index>();
  if (!parent.ok() || !depth.ok()) return parent.ok() ? depth.status() : parent.status();
  job.report().add("deepest", deepest_path(document, *parent, *depth));
  if (document.tokens.has_value()) job.report().add("nesting", count_by_path(*document.tokens, *parent));
  return absl::OkStatus();
}

absl::Status run_match_brackets(Job& job, const Options& options) {
  job.begin_read();
  const absl::StatusOr<Document> document = read_document(options);
  if (!document.ok()) return document.status();
  const absl::StatusOr<Nesting> nesting = match(job, options, *document);
  if (!nesting.ok()) return nesting.status();
  if (!options.output.empty()) {
    if (absl::Status written = write_nesting(job, options.output, *document, *nesting); !written.ok())
      return written;
  }
  Report& report = job.report();
  report.add("command", "match-brackets");
  report.add("input", options.input);
  report.add("syntax", document->syntax);
  report.add(document->tokens.has_value() ? "tokens" : "bytes", nesting->arrays[0].shape()[0]);
  report.add("maximum_depth", nesting->maximum_depth);
  if (nesting->unmatched.has_value()) report.add("unmatched", *nesting->unmatched);
  absl::Status described = nesting->arrays[0].type() == ElementType::kInt64
                               ? describe_nesting<std::int64_t>(job, *document, *nesting)
                               : describe_nesting<std::int32_t>(job, *document, *nesting);
  if (!described.ok()) return described;
  if (!options.output.empty()) report.add("output", options.output);
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace

void add_bracket_match_commands(CommandLine& line) {
  line.add_bench_row(
      {"match-brackets", bench_brackets, [](const Buffer& text) { return match_brackets(text); }});
  add_clip_drawing_command(line);
  const auto options = std::make_shared<Options>();
  CLI::App& command = line.add(
      "match-brackets",
      "Match the brackets of a text, the tags of an XML or SVG file, or a JSON file's objects and arrays",
      [options](Job& job) { return run_match_brackets(job, *options); },
      [options] {
        const std::string syntax = named_syntax(*options);
        if (!options->pairs.empty() && !syntax.empty() && syntax != "brackets") {
          throw CLI::ValidationError("--pairs", "is for --syntax brackets only");
        }
      });
  command.add_option("input", options->input, "Text file")->required()->type_name("FILE");
  command
      .add_option("--syntax", options->syntax,
                  "Otherwise xml for .svg, .xml and what begins with <?xml or <svg, json for .json")
      ->check(CLI::IsMember({"brackets", "xml", "json"}));
  command.add_option("--pairs", options->pairs, "Opens and closes in turn; otherwise ()[]{}")
      ->check([](const std::string& pairs) {
        if (!pairs.empty() && pairs.size() % 2 == 0) return std::string();
        return absl::StrCat("has ", pairs.size(), " bytes; opens and closes in turn, as ()[]{}, are right");
      });
  command.add_flag("--lenient", options->lenient, "Match what can be matched, and count the rest");
  line.add_output(command, "-o,--output", options->output,
                  "File to write: partner, parent and depth of each element", OutputFormat::kNpz)
      .type_name("OUT.npz");
}

}  // namespace cumulus::cli

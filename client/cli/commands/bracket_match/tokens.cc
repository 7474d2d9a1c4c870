#include "cli/commands/bracket_match/tokens.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <unordered_map>

namespace cumulus::cli {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// Collects tokens; the same name gets the same number.
class TokenList {
 public:
  enum class Role { kOpen, kClose, kAlone };

  void add(Role role, std::string_view name, std::size_t offset) {
    const auto [entry, fresh] =
        numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(numbers_.size()));
    if (fresh) tokens_.vocabulary.emplace_back(name);
    const std::int32_t number = entry->second;
    tokens_.kinds.push_back(role == Role::kOpen ? number + 1 : role == Role::kClose ? -number - 1 : 0);
    tokens_.offsets.push_back(static_cast<std::int64_t>(offset));
    tokens_.names.push_back(number);
  }
  NestingTokens take() && { return std::move(tokens_); }

 private:
  NestingTokens tokens_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

/// Reads markup from '<' to '<'.
class XmlTokenizer {
 public:
  explicit XmlTokenizer(std::string_view document) : document_(document) {}

  absl::StatusOr<NestingTokens> run() && {
    for (std::size_t at = document_.find('<'); at != kNone; at = document_.find('<', at)) {
      const std::size_t end = read_markup(at);
      if (end == kNone) {
        return absl::InvalidArgumentError(
            absl::StrCat(line_and_column(document_, static_cast<std::int64_t>(at)), ": ", problem_));
      }
      at = end;
    }
    return std::move(list_).take();
  }

 private:
  bool begins(std::size_t at, std::string_view what) const {
    return document_.compare(at, what.size(), what) == 0;
  }

  /// Returns the position after the markup at `at`; kNone, and problem_ says why, where it does not end.
  std::size_t read_markup(std::size_t at) {
    if (begins(at, "<!--")) return after(at + 4, "-->", "this comment does not end; --> is missing");
    if (begins(at, "<![CDATA["))
      return after(at + 9, "]]>", "this CDATA section does not end; ]]> is missing");
    if (begins(at, "<?"))
      return after(at + 2, "?>", "this processing instruction does not end; ?> is missing");
    if (begins(at, "<!")) return after_declaration(at);
    return read_tag(at);
  }

  std::size_t after(std::size_t from, std::string_view end, const char* problem) {
    problem_ = problem;
    const std::size_t found = document_.find(end, from);
    return found == kNone ? kNone : found + end.size();
  }

  /// A document type may hold declarations, comments and instructions in brackets.
  std::size_t after_declaration(std::size_t at) {
    int depth = 0;
    for (std::size_t i = at; i < document_.size(); ++i) {
      const char c = document_[i];
      if (i > at && (begins(i, "<!--") || begins(i, "<?"))) {
        i = read_markup(i);
        if (i == kNone) return kNone;
        --i;
      } else if (c == '"' || c == '\'') {
        i = document_.find(c, i + 1);
        if (i == kNone) break;
      } else if (c == '<') {
        ++depth;
      } else if (c == '>' && --depth == 0) {
        return i + 1;
      }
    }
    problem_ = "this declaration does not end; > is missing";
    return kNone;
  }

  std::size_t read_tag(std::size_t at) {
    const bool close = begins(at, "</");
    const std::size_t name_begin = at + (close ? 2 : 1);
    const std::size_t name_end =
        std::min(document_.find_first_of(" \t\r\n/>\"'<", name_begin), document_.size());
    if (name_end == name_begin) {
      problem_ = "a tag's name has to follow this <; write &lt; for the character itself";
      return kNone;
    }
    const std::size_t end = tag_end(name_end);
    if (end == kNone) {
      problem_ = "this tag does not end; > is missing";
      return kNone;
    }
    using Role = TokenList::Role;
    const bool alone = !close && document_[end - 1] == '/';
    list_.add(alone   ? Role::kAlone
              : close ? Role::kClose
                      : Role::kOpen,
              document_.substr(name_begin, name_end - name_begin), at);
    return end + 1;
  }

  /// The position of the tag's '>', which quotes may hide.
  std::size_t tag_end(std::size_t from) const {
    for (std::size_t i = from; i < document_.size(); ++i) {
      const char c = document_[i];
      if (c == '>') return i;
      if (c == '<') return kNone;
      if (c != '"' && c != '\'') continue;
      i = document_.find(c, i + 1);
      if (i == kNone) return kNone;
    }
    return kNone;
  }

  const std::string_view document_;
  std::string problem_;
  TokenList list_;
};

/// The position after the string that begins at `at`; kNone where it does not end.
std::size_t after_json_string(std::string_view document, std::size_t at) {
  for (std::size_t i = at + 1; i < document.size(); ++i) {
    if (document[i] == '"') return i + 1;
    if (document[i] == '\\') ++i;
  }
  return kNone;
}

}  // namespace

std::string line_and_column(std::string_view document, std::int64_t offset) {
  const std::string_view before = document.substr(0, static_cast<std::size_t>(offset));
  const std::size_t line_begin = before.rfind('\n') == kNone ? 0 : before.rfind('\n') + 1;
  return absl::StrCat(1 + std::count(before.begin(), before.end(), '\n'), ":",
                      before.size() - line_begin + 1);
}

absl::StatusOr<NestingTokens> tokenize_xml(std::string_view document) { return XmlTokenizer(document).run(); }

absl::StatusOr<NestingTokens> tokenize_json(std::string_view document) {
  using Role = TokenList::Role;
  TokenList list;
  for (std::size_t at = document.find_first_of("\"{}[]"); at != kNone;
       at = document.find_first_of("\"{}[]", at)) {
    const char c = document[at];
    if (c == '"') {
      const std::size_t end = after_json_string(document, at);
      if (end == kNone) {
        return absl::InvalidArgumentError(
            absl::StrCat(line_and_column(document, static_cast<std::int64_t>(at)),
                         ": this string does not end; \" is missing"));
      }
      at = end;
      continue;
    }
    list.add(c == '{' || c == '[' ? Role::kOpen : Role::kClose, c == '{' || c == '}' ? "object" : "array",
             at);
    ++at;
  }
  return std::move(list).take();
}

}  // namespace cumulus::cli

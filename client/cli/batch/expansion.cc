#include "cli/batch/expansion.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_replace.h>
#include <glob.h>

#include <CLI/Error.hpp>
#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/app/invocation.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

constexpr std::array kPlaces = {"{stem}", "{name}", "{ext}", "{dir}", "{index}"};
constexpr const char* kWildcards = "*?[";

/// What stands at the places for the input `path`, the one of number `index`.
std::string filled(const std::string& word, const fs::path& path, std::size_t index) {
  const std::string extension = path.extension().string();
  const std::string folder = path.parent_path().string();
  return absl::StrReplaceAll(word, {{"{stem}", path.stem().string()},
                                    {"{name}", path.filename().string()},
                                    {"{ext}", extension.empty() ? extension : extension.substr(1)},
                                    {"{dir}", folder.empty() ? "." : folder},
                                    {"{index}", absl::StrFormat("%06d", index)}});
}

/// A word stands for itself where a file has just this name, and where it has brackets only and no file fits:
/// [].
absl::StatusOr<Words> files_of(const Word& word) {
  if (word.pattern.empty()) return Words{word.text};
  std::error_code ignored;
  if (fs::exists(word.text, ignored)) return Words{word.text};
  glob_t found{};
  const int failure = ::glob(word.pattern.c_str(), 0, nullptr, &found);
  Words files;
  for (std::size_t i = 0; failure == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (!files.empty()) return files;
  if (word.text.find_first_of("*?") == std::string::npos) return Words{word.text};
  return absl::NotFoundError(absl::StrCat("no file fits ", word.text,
                                          "; name files that exist, or put quotes around a * that is meant"));
}

/// The inputs among the words, and with them that the command takes the rest.
absl::StatusOr<Words> inputs_among(const Words& words) {
  Invocation invocation;
  try {
    Words inputs = invocation.read_several(words);
    const auto option = std::find_if(inputs.begin(), inputs.end(), [](const std::string& word) {
      return word.size() > 1 && word.front() == '-';
    });
    if (option == inputs.end()) return inputs;
    Invocation strict;  // which says what is wrong with it
    strict.read(words);
    return inputs;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return absl::InvalidArgumentError("--help is no job; give a command");
    return absl::InvalidArgumentError(invocation.explain(error));
  }
}

absl::StatusOr<std::vector<Words>> spread(const Words& words) {
  const absl::StatusOr<Words> inputs = inputs_among(words);
  if (!inputs.ok()) return inputs.status();
  const auto is_input = [&](const std::string& word) {
    return std::find(inputs->begin(), inputs->end(), word) != inputs->end();
  };
  const auto places = static_cast<std::size_t>(std::count_if(words.begin(), words.end(), is_input));
  if (inputs->empty() || places != inputs->size()) {
    return absl::InvalidArgumentError(
        "it is not clear which words are the inputs that {stem} and the like stand for; join the values of "
        "options "
        "to their names: --radius-map=map.exr");
  }
  std::vector<Words> jobs;
  for (std::size_t index = 0; index < inputs->size(); ++index) {
    Words job;
    bool input_stands = false;
    for (const std::string& word : words) {
      if (!is_input(word)) {
        job.push_back(filled(word, (*inputs)[index], index));
      } else if (!std::exchange(input_stands, true)) {
        job.push_back((*inputs)[index]);
      }
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Takes a line apart, character by character.
class Splitter {
 public:
  absl::StatusOr<std::vector<Word>> split(const std::string& line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (quote_ == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
        end_word();
        continue;
      }
      in_word_ = true;
      if (c == quote_) {
        quote_ = 0;
      } else if (quote_ == 0 && (c == '\'' || c == '"')) {
        quote_ = c;
      } else if (c == '\\' && quote_ != '\'') {
        if (++i == line.size())
          return absl::InvalidArgumentError("the line ends with a backslash; a job has one line");
        add(line[i], true);
      } else {
        add(c, quote_ != 0);
      }
    }
    if (quote_ != 0)
      return absl::InvalidArgumentError(absl::StrCat("the quote ", std::string(1, quote_), " is not closed"));
    end_word();
    return std::move(words_);
  }

 private:
  void add(char c, bool quoted) {
    const bool special = std::string_view("*?[]\\").find(c) != std::string_view::npos;
    wildcard_ = wildcard_ || (!quoted && std::string_view(kWildcards).find(c) != std::string_view::npos);
    text_ += c;
    if (special && quoted) pattern_ += '\\';
    pattern_ += c;
  }
  void end_word() {
    if (!in_word_) return;
    words_.push_back({std::move(text_), wildcard_ ? std::move(pattern_) : ""});
    text_.clear();
    pattern_.clear();
    in_word_ = wildcard_ = false;
  }

  std::vector<Word> words_;
  std::string text_;
  std::string pattern_;
  bool in_word_ = false;
  bool wildcard_ = false;
  char quote_ = 0;
};

}  // namespace

Word word_as_typed(const std::string& text) {
  return {text, text.find_first_of(kWildcards) == std::string::npos ? "" : text};
}

absl::StatusOr<std::vector<Word>> split_words(const std::string& line) { return Splitter().split(line); }

bool has_place(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::any_of(kPlaces.begin(), kPlaces.end(),
                       [&](const char* place) { return absl::StrContains(word, place); });
  });
}

absl::StatusOr<std::vector<std::string>> files_named_by(const std::vector<std::string>& words) {
  Words named;
  for (const std::string& text : words) {
    absl::StatusOr<Words> files = files_of(word_as_typed(text));
    if (!files.ok()) return files.status();
    named.insert(named.end(), files->begin(), files->end());
  }
  return named;
}

absl::StatusOr<std::vector<std::vector<std::string>>> expand(const std::vector<Word>& line) {
  Words words;
  for (const Word& word : line) {
    absl::StatusOr<Words> files = files_of(word);
    if (!files.ok()) return files.status();
    words.insert(words.end(), files->begin(), files->end());
  }
  if (has_place(words)) return spread(words);
  return std::vector<Words>{std::move(words)};
}

}  // namespace cumulus::cli

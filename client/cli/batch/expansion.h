#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace cumulus::cli {

/// A word of a line.
struct Word {
  std::string text;
  std::string pattern = "";  ///< for glob(3), where a wildcard stands outside of quotes; else empty
};

/// A word that a shell has read, whose wildcards it may have left alone.
Word word_as_typed(const std::string& text);

/// The words of a line of a shell: quotes and backslashes are taken off.
absl::StatusOr<std::vector<Word>> split_words(const std::string& line);

/// The files that words mean as their shell would have read them: one with wildcards, which quotes have kept
/// from it, all that fit.
absl::StatusOr<std::vector<std::string>> files_named_by(const std::vector<std::string>& words);

/// Whether one of the words has a place for a part of an input's name: {stem}, {name}, {ext}, {dir} or
/// {index}.
bool has_place(const std::vector<std::string>& words);

/// Of each job that a line asks for, its words. A word with wildcards becomes the files that fit, in the
/// order of their names. Where a word has a place for a part of an input's name each input has a job of its
/// own; the inputs are what the command takes last.
absl::StatusOr<std::vector<std::vector<std::string>>> expand(const std::vector<Word>& line);

}  // namespace cumulus::cli

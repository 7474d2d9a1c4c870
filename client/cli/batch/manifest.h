#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cumulus::cli {

class Invocation;

/// A job of a manifest: a line of it.
struct ManifestJob {
  int line = 0;      // from 1
  std::string text;  // as it stands there
  std::shared_ptr<const Invocation> invocation;
  std::vector<std::string> inputs;   // words that may name files to read, normalised
  std::vector<std::string> outputs;  // files that it writes, normalised
  /// Indices of earlier jobs that have to end before this one begins: those whose outputs it reads, and those
  /// that read or write what it writes.
  std::vector<std::size_t> after;
};

/// Reads a manifest: on each line a job, as it would stand behind "cumulus" in a shell (quotes and
/// backslashes included, variables and patterns not); empty lines and those that begin with # are none. Every
/// line is checked as far as that is possible before it is run. The error tells the line.
absl::StatusOr<std::vector<ManifestJob>> read_manifest(const std::string& path);

/// The words of a line of a shell.
absl::StatusOr<std::vector<std::string>> split_words(const std::string& line);

}  // namespace cumulus::cli

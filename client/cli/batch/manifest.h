#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <istream>
#include <memory>
#include <string>
#include <vector>

#include "cli/batch/expansion.h"

namespace cumulus::cli {

class Invocation;

/// A job of a manifest: a line of it, or the part of a line that is for one input.
struct ManifestJob {
  int line = 0;      // from 1; 0: of no manifest
  std::string text;  // as it stands there, or as it would stand there for its input alone
  std::vector<std::string> words;
  std::vector<std::string> inputs;   // words that may name files to read, normalised
  std::vector<std::string> outputs;  // files that it writes, normalised
  /// Indices of earlier jobs that have to end before this one begins: those whose outputs it reads, and those
  /// that read or write what it writes.
  std::vector<std::size_t> after;
};

/// What a job's words ask for, checked as far as that is possible before it is run.
absl::StatusOr<std::unique_ptr<const Invocation>> read_invocation(const std::vector<std::string>& words);

/// Where a job comes from, for messages: "jobs.txt:3", or its text where that is no line of a manifest.
std::string place_of(const std::string& manifest, const ManifestJob& job);

/// Reads a manifest: on each line a job, as it would stand behind "cumulus" in a shell (quotes, backslashes
/// and wildcards included, variables not), or many, as expand() has it; empty lines and those that begin with
/// # are none. Every line is checked as far as that is possible before it is run. The error tells the line.
/// "-" is standard input.
absl::StatusOr<std::vector<ManifestJob>> read_manifest(const std::string& path);

/// The jobs of one line, as on the command line.
absl::StatusOr<std::vector<ManifestJob>> read_line(const std::vector<Word>& line);

}  // namespace cumulus::cli

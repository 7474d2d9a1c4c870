#include "cli/batch/manifest.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <CLI/Error.hpp>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "cli/app/invocation.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

std::string normalised(const std::string& path) {
  return fs::absolute(fs::path(path)).lexically_normal().string();
}

/// /dev/null and pipes: any number of jobs may write there.
bool takes_anything(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

/// The files that a word may name: "a.exr", and of "--map=a.exr" what follows.
std::string_view file_part(std::string_view word) {
  const std::size_t equals = word.find('=');
  return word.rfind("--", 0) == 0 && equals != std::string_view::npos ? word.substr(equals + 1) : word;
}

bool share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& path) { return std::find(b.begin(), b.end(), path) != b.end(); });
}

absl::Status refusal(const std::string& manifest, int line, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(manifest, ":", line, ": ", why));
}

absl::StatusOr<std::shared_ptr<const Invocation>> read_invocation(std::vector<std::string> words) {
  auto invocation = std::make_shared<Invocation>();
  try {
    invocation->read(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return absl::InvalidArgumentError("--help is no job; give a command");
    return absl::InvalidArgumentError(invocation->explain(error));
  }
  if (invocation->command() == "batch")
    return absl::InvalidArgumentError("a batch within a batch; put its jobs into this file");
  if (const absl::Status fits = invocation->check_outputs(); !fits.ok()) return fits;
  return invocation;
}

absl::StatusOr<ManifestJob> read_job(const std::string& text, int line) {
  absl::StatusOr<std::vector<std::string>> words = split_words(text);
  if (!words.ok()) return words.status();
  if (words->front() == "cumulus") words->erase(words->begin());
  auto invocation = read_invocation(*words);
  if (!invocation.ok()) return invocation.status();
  ManifestJob job;
  job.line = line;
  job.text = text;
  job.invocation = *std::move(invocation);
  for (const std::string& output : job.invocation->outputs()) {
    if (!takes_anything(output)) job.outputs.push_back(normalised(output));
  }
  for (const std::string& word : *words) {
    const std::string path = normalised(std::string(file_part(word)));
    if (std::find(job.outputs.begin(), job.outputs.end(), path) == job.outputs.end())
      job.inputs.push_back(path);
  }
  return job;
}

absl::Status order(const std::string& manifest, std::vector<ManifestJob>& jobs) {
  for (std::size_t later = 0; later < jobs.size(); ++later) {
    ManifestJob& job = jobs[later];
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const ManifestJob& first = jobs[earlier];
      if (share(job.outputs, first.outputs)) {
        return refusal(manifest, job.line,
                       absl::StrCat("it writes a file that line ", first.line,
                                    " writes, too; give each a file of its own"));
      }
      if (share(job.inputs, first.outputs) || share(job.outputs, first.inputs)) job.after.push_back(earlier);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> split_words(const std::string& line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == line.size())
        return absl::InvalidArgumentError("the line ends with a backslash; a job has one line");
      words.back() += line[i];
    } else {
      words.back() += c;
    }
  }
  if (quote != 0)
    return absl::InvalidArgumentError(absl::StrCat("the quote ", std::string(1, quote), " is not closed"));
  return words;
}

absl::StatusOr<std::vector<ManifestJob>> read_manifest(const std::string& path) {
  std::ifstream file(path);
  std::vector<ManifestJob> jobs;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string text(absl::StripAsciiWhitespace(line));
    if (text.empty() || text.front() == '#') continue;
    absl::StatusOr<ManifestJob> job = read_job(text, number);
    if (!job.ok()) return refusal(path, number, std::string(job.status().message()));
    jobs.push_back(*std::move(job));
  }
  if (file.bad() || !file.eof()) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno),
                                            "; give a text file with a job on each line"));
  }
  if (jobs.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no job; give each a line, such as: blur in.exr -o out.exr --sigma 8"));
  if (absl::Status ordered = order(path, jobs); !ordered.ok()) return ordered;
  return jobs;
}

}  // namespace cumulus::cli

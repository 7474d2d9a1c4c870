#include "cli/batch/manifest.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>

#include <CLI/Error.hpp>
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cli/app/invocation.h"
#include "cli/files/input.h"

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

absl::Status refusal(const std::string& manifest, int line, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(manifest, ":", line, ": ", why));
}

/// As a line of a manifest that a shell would read the same way.
std::string text_of(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             std::string_view("/._-=,:+@%").find(c) != std::string_view::npos;
    });
    absl::StrAppend(out, plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  });
}

absl::StatusOr<ManifestJob> read_job(const std::vector<std::string>& words) {
  const auto invocation = read_invocation(words);
  if (!invocation.ok()) return invocation.status();
  ManifestJob job;
  job.text = text_of(words);
  job.words = words;
  for (const std::string& output : (*invocation)->outputs()) {
    if (!takes_anything(output)) job.outputs.push_back(normalised(output));
  }
  for (const std::string& word : words) {
    const std::string path = normalised(std::string(file_part(word)));
    if (std::find(job.outputs.begin(), job.outputs.end(), path) == job.outputs.end())
      job.inputs.push_back(path);
  }
  return job;
}

/// The jobs of a line of a manifest.
absl::StatusOr<std::vector<ManifestJob>> read_jobs(const std::string& text, int line) {
  absl::StatusOr<std::vector<Word>> words = split_words(text);
  if (!words.ok()) return words.status();
  if (words->front().text == "cumulus") words->erase(words->begin());
  absl::StatusOr<std::vector<ManifestJob>> jobs = read_line(*words);
  if (!jobs.ok()) return jobs;
  const auto first = read_invocation(jobs->front().words);
  if (!first.ok()) return first.status();
  if (const std::string option = (*first)->given_global_option(); !option.empty())
    return absl::InvalidArgumentError(option + " is for all jobs: give it to cumulus batch");
  for (ManifestJob& job : *jobs) {
    job.line = line;
    if (jobs->size() == 1) job.text = text;
  }
  return jobs;
}

/// Fills in what each job has to wait for. `line`, if any, becomes that of a job that cannot be ordered.
absl::Status order(std::vector<ManifestJob>& jobs, int* line = nullptr) {
  std::map<std::string, std::size_t> writers;               // by file
  std::map<std::string, std::vector<std::size_t>> readers;  // likewise
  for (std::size_t later = 0; later < jobs.size(); ++later) {
    ManifestJob& job = jobs[later];
    std::set<std::size_t> after;
    for (const std::string& output : job.outputs) {
      const auto [writer, fresh] = writers.emplace(output, later);
      if (!fresh) {
        if (line != nullptr) *line = job.line;
        return absl::InvalidArgumentError(
            absl::StrCat("it writes a file that ",
                         line == nullptr ? "another job" : absl::StrCat("line ", jobs[writer->second].line),
                         " writes, too; give each a file of its own: ", output));
      }
      const std::vector<std::size_t>& earlier = readers[output];
      after.insert(earlier.begin(), earlier.end());
    }
    for (const std::string& input : job.inputs) {
      if (const auto writer = writers.find(input); writer != writers.end() && writer->second != later)
        after.insert(writer->second);
      readers[input].push_back(later);
    }
    job.after.assign(after.begin(), after.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Invocation>> read_invocation(const std::vector<std::string>& words) {
  auto invocation = std::make_unique<Invocation>();
  try {
    invocation->read(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return absl::InvalidArgumentError("--help is no job; give a command");
    return absl::InvalidArgumentError(invocation->explain(error));
  }
  if (invocation->command() == "batch")
    return absl::InvalidArgumentError("a batch within a batch; put its jobs into this file");
  if (const absl::Status fits = invocation->check_outputs(); !fits.ok()) return fits;
  return invocation;
}

std::string place_of(const std::string& manifest, const ManifestJob& job) {
  return job.line == 0 ? job.text : absl::StrCat(manifest, ":", job.line);
}

absl::StatusOr<std::vector<ManifestJob>> read_line(const std::vector<Word>& line) {
  const auto words = expand(line);
  if (!words.ok()) return words.status();
  std::vector<ManifestJob> jobs;
  for (const std::vector<std::string>& own : *words) {
    absl::StatusOr<ManifestJob> job = read_job(own);
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
  }
  if (absl::Status ordered = order(jobs); !ordered.ok()) return ordered;
  return jobs;
}

absl::StatusOr<std::vector<ManifestJob>> read_manifest(const std::string& path) {
  const absl::StatusOr<std::string> manifest = read_text(path);
  if (!manifest.ok()) return manifest.status();
  std::vector<ManifestJob> jobs;
  int number = 0;
  for (const auto& line : absl::StrSplit(*manifest, '\n')) {
    ++number;
    const std::string text(absl::StripAsciiWhitespace(line));
    if (text.empty() || text.front() == '#') continue;
    absl::StatusOr<std::vector<ManifestJob>> read = read_jobs(text, number);
    if (!read.ok()) return refusal(path, number, std::string(read.status().message()));
    std::move(read->begin(), read->end(), std::back_inserter(jobs));
  }
  if (jobs.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no job; give each a line, such as: blur in.exr -o out.exr --sigma 8"));
  for (ManifestJob& job : jobs) job.after.clear();
  int line = 0;
  if (absl::Status ordered = order(jobs, &line); !ordered.ok())
    return refusal(path, line, std::string(ordered.message()));
  return jobs;
}

}  // namespace cumulus::cli

#include "cli/commands/sampling_table/input.h"

#include <absl/strings/str_replace.h>

#include <utility>

#include "cli/app/server_words.h"
#include "cli/commands/sampling_table/table_file.h"
#include "cli/files/extension.h"

namespace cumulus::cli {
namespace {

const char* name_of(InvalidWeights choice) { return choice == InvalidWeights::kClamp ? "clamp" : "refuse"; }

/// What the server says of a map, in the words of the command line that it came from.
absl::Status refusal_of(const absl::Status& failure, const std::string& path) {
  return in_words_of_options(failure, {{"BuildSamplingTable: weights: ", path + ": "},
                                       {"BuildSamplingTable: luminance_coefficients: ", "--luminance: "},
                                       {"an EQUAL_AREA map", "a map with --projection equal-area"},
                                       {"uniform_if_all_zero", "--uniform-if-zero is given"},
                                       {"invalid_weights is CLAMP", "--invalid-weights is clamp"}});
}

}  // namespace

bool is_table_file(const std::string& path) { return extension_of(path) == ".cst"; }

absl::StatusOr<Map> read_map_or_table(const std::string& path) {
  if (!is_table_file(path)) return read_map(path);
  absl::StatusOr<Array> table = read_table(path);
  if (!table.ok()) return table.status();
  return Map{*std::move(table), 0};
}

absl::StatusOr<Result> build_table(Job& job, const Session& session, const std::string& path,
                                   const Array& pixels, const SamplingTableOptions& options) {
  const absl::StatusOr<Buffer> weights = job.upload(session, pixels.view());
  if (!weights.ok()) return weights.status();
  absl::StatusOr<Result> built = job.run(session, "build", build_sampling_table(*weights, options));
  if (!built.ok()) return refusal_of(built.status(), path);
  return built;
}

absl::StatusOr<Buffer> prepare_table(Job& job, const Session& session, const std::string& path,
                                     const Array& input, const SamplingTableOptions& options) {
  if (is_table_file(path)) return job.upload(session, input.view());
  absl::StatusOr<Result> built = build_table(job, session, path, input, options);
  if (!built.ok()) return built.status();
  return built->take_buffer("table");
}

void describe_table_input(const std::string& path, const Map& input, const SamplingTableOptions& options,
                          Report& report) {
  report.add("input", path);
  if (is_table_file(path)) return;
  describe_map(input, report);
  report.add("invalid_weights", name_of(options.invalid_weights));
}

}  // namespace cumulus::cli

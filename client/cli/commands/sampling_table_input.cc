#include "cli/commands/sampling_table_input.h"

#include <filesystem>
#include <utility>

#include "cli/sampling_table_file.h"

namespace cumulus::cli {
namespace {

const char* name_of(InvalidWeights choice) { return choice == InvalidWeights::kClamp ? "clamp" : "refuse"; }

}  // namespace

bool is_table_file(const std::string& path) { return std::filesystem::path(path).extension() == ".cst"; }

absl::StatusOr<Map> read_map_or_table(const std::string& path) {
  if (!is_table_file(path)) return read_map(path);
  absl::StatusOr<Array> table = read_table(path);
  if (!table.ok()) return table.status();
  return Map{*std::move(table), 0};
}

absl::StatusOr<Buffer> prepare_table(Job& job, const Session& session, const std::string& path,
                                     const Array& input, const SamplingTableOptions& options) {
  absl::StatusOr<Buffer> uploaded = job.upload(session, input.view());
  if (!uploaded.ok() || is_table_file(path)) return uploaded;
  auto built = job.run(session, "build", build_sampling_table(*uploaded, options));
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

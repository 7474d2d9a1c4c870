#include "cli/commands/sampling_table/input.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "cli/app/refusal.h"
#include "cli/commands/sampling_table/table_file.h"
#include "cli/files/elements.h"
#include "cli/files/input.h"
#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

ResidentFile resident_file(Session session, Buffer buffer) {
  ResidentFile file{std::make_shared<const Session>(std::move(session)), {}};
  file.buffers.push_back(std::move(buffer));
  return file;
}

absl::StatusOr<ResidentFile> load_table(Job& job, const std::string& path) {
  job.begin_read();
  absl::StatusOr<Array> table = read_table(path);
  if (!table.ok()) return table.status();
  absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<Buffer> uploaded = job.upload(*session, *std::move(table));
  if (!uploaded.ok()) return uploaded.status();
  return resident_file(*std::move(session), *std::move(uploaded));
}

const char* name_of(InvalidWeights choice) { return choice == InvalidWeights::kClamp ? "clamp" : "refuse"; }

/// The options that the fields of BuildSamplingTable come from, unless they are called the same.
std::vector<FieldName> fields_of(const std::string& path, const SamplingTableOptions& options) {
  const bool equal_area = options.projection == MapProjection::kEqualArea;
  return {{"weights", path, equal_area ? "of --projection equal-area" : ""},
          {"luminance_coefficients", "--luminance"}};
}

/// The sample of a map, [height, width], [height, width, channels] or a list, that the server found invalid.
double invalid_sample(const Array& pixels, const std::map<std::string, std::string>& facts) {
  const Shape& shape = pixels.shape();
  const auto fact = [&](const char* name) { return std::stoll(facts.at(name)); };
  const std::int64_t width = shape.size() == 1 ? shape[0] : shape[1];
  const std::int64_t channels = shape.size() == 3 ? shape[2] : 1;
  const std::int64_t sample = (fact("row") * width + fact("column")) * channels + fact("channel");
  return with_elements(pixels, [&](const auto* elements) { return static_cast<double>(elements[sample]); });
}

}  // namespace

absl::Status explain_table_refusal(const absl::Status& refusal, const std::string& path, const Array& pixels,
                                   const SamplingTableOptions& options) {
  const std::string reason = error_reason(refusal);
  if (reason == "ALL_WEIGHTS_ZERO") {
    const std::string clamped = describe_clamped(find_invalid(pixels));
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": every weight is zero, so there is nothing to draw", clamped.empty() ? "" : ": ", clamped,
        "; at least one texel needs a positive value, unless --uniform-if-zero is given"));
  }
  if (reason != "INVALID_WEIGHT") return name_fields(refusal, fields_of(path, options));
  const std::map<std::string, std::string> facts = error_metadata(refusal);
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": row ", facts.at("row"), ", column ", facts.at("column"), ", channel ",
                   facts.at("channel"), " is ", invalid_sample(pixels, facts),
                   "; weights are finite and not negative, unless --invalid-weights is clamp"));
}

bool is_table_file(const std::string& path) { return input_extension(path) == ".cst"; }

SamplingTableOptions options_for(const MapTableOptions& options, const Map& map) {
  SamplingTableOptions table = options;
  if (options.luminance_given || !map.chromaticities.has_value() || map.pixels.shape()[2] < 3) return table;
  const auto weights = luminance_of(*map.chromaticities);
  // Those of Rec. 709 have a name, and are the same bits by it.
  constexpr std::array<float, 3> kRec709 = {0.2126F, 0.7152F, 0.0722F};
  constexpr float kAlike = 5e-4F;
  const auto alike = [&](std::size_t i) { return std::abs((*weights)[i] - kRec709[i]) < kAlike; };
  if (!weights.has_value() || (alike(0) && alike(1) && alike(2))) return table;
  table.luminance = Luminance::kCustom;
  std::copy(weights->begin(), weights->end(), std::begin(table.luminance_coefficients));
  return table;
}

absl::StatusOr<Result> build_table(Job& job, const Session& session, const std::string& path, const Map& map,
                                   const MapTableOptions& options) {
  const absl::StatusOr<Buffer> weights = job.upload(session, map.pixels.view());
  if (!weights.ok()) return weights.status();
  const SamplingTableOptions table = options_for(options, map);
  absl::StatusOr<Result> built = job.run(session, "build", build_sampling_table(*weights, table));
  if (!built.ok()) return explain_table_refusal(built.status(), path, map.pixels, table);
  return built;
}

absl::StatusOr<TableOnServer> prepare_table(Job& job, const std::string& path,
                                            const MapTableOptions& options) {
  if (is_table_file(path)) {
    bool loads = false;
    auto resident = job.resident(path, [&] {
      loads = true;
      return load_table(job, path);
    });
    if (!resident.ok()) return resident.status();
    return TableOnServer{Map(), *std::move(resident), !loads};
  }
  job.begin_read();
  absl::StatusOr<Map> map = read_map(path, options.choice);
  if (!map.ok()) return map.status();
  absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<Result> built = build_table(job, *session, path, *map, options);
  if (!built.ok()) return built.status();
  absl::StatusOr<Buffer> table = built->take_buffer("table");
  if (!table.ok()) return table.status();
  auto file = std::make_shared<const ResidentFile>(resident_file(*std::move(session), *std::move(table)));
  return TableOnServer{*std::move(map), std::move(file)};
}

void describe_table_input(const std::string& path, const Map& input, const MapTableOptions& options,
                          Report& report) {
  report.add("input", path);
  if (is_table_file(path)) return;
  describe_map(input, report);
  const SamplingTableOptions table = options_for(options, input);
  if (input.pixels.shape()[2] >= 3 && table.luminance == Luminance::kCustom) {
    const auto* const weights = std::begin(table.luminance_coefficients);
    report.add("luminance", std::vector<double>(weights, weights + 3));
  }
  report.add("invalid_weights", name_of(options.invalid_weights));
}

}  // namespace cumulus::cli

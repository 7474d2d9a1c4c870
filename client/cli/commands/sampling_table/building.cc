#include "cli/commands/sampling_table/building.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "cli/batch/expansion.h"
#include "cli/commands/sampling_table/table_file.h"
#include "cli/job/read_ahead.h"
#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

/// Frames that are kept in store before their place in the whole is known.
constexpr std::size_t kFramesAhead = 4;

/// A saved table in another format, which takes no server.
absl::Status convert_table(Job& job, const TableOptions& options) {
  job.stages().begin("read");
  const std::string& input = options.inputs.front();
  const absl::StatusOr<Array> table = read_table(input);
  if (!table.ok()) return table.status();
  job.stages().begin("write");
  if (!job.dry_run()) {
    absl::Status written = export_table(options.output, table->view(), options.format);
    if (!written.ok()) return written;
  }
  job.stages().end();
  job.report().add("command", "sampling-table");
  job.report().add("input", input);
  job.report().add("output", options.output);
  return absl::OkStatus();
}

absl::Status require_same_size(const std::string& path, const Map& frame, const std::string& first_path,
                               const Map& first) {
  if (frame.pixels.shape() == first.pixels.shape() && frame.pixels.type() == first.pixels.type())
    return absl::OkStatus();
  const auto told = [](const Map& map) {
    return absl::StrCat("[", absl::StrJoin(map.pixels.shape(), ", "), "] of ",
                        std::string(element_name(map.pixels.type())));
  };
  return absl::InvalidArgumentError(absl::StrCat(path, " has the shape ", told(frame), ", and ", first_path,
                                                 " ", told(first), "; the layers of a table are all alike"));
}

/// What is to become a table: a picture, or several one behind the other, [layers, height, width, channels].
struct Layers {
  Map first;
  std::optional<Array> all;  // where there are several
  InvalidValues invalid = {};
};

/// Puts a layer into its place, and leaves in `place` that of the next one.
void append_layer(const Map& layer, std::span<std::byte>& place) {
  const std::span<const std::byte> bytes = layer.pixels.bytes();
  std::copy(bytes.begin(), bytes.end(), place.begin());
  place = place.subspan(bytes.size());
}

absl::StatusOr<Layers> read_layers(Job& job, const std::vector<std::string>& paths,
                                   const PictureChoice& choice) {
  ReadAhead<absl::StatusOr<Map>> frames(paths.size(), kFramesAhead,
                                        [&](std::size_t index) { return read_map(paths[index], choice); });
  absl::StatusOr<Map> first = frames.next();
  if (!first.ok()) return first.status();
  Layers layers{*std::move(first), std::nullopt};
  layers.invalid = layers.first.invalid;
  if (paths.size() == 1) return layers;
  Shape shape = layers.first.pixels.shape();
  shape.insert(shape.begin(), static_cast<std::int64_t>(paths.size()));
  absl::StatusOr<Array> all = Array::allocate(layers.first.pixels.type(), shape);
  if (!all.ok()) return all.status();
  std::span<std::byte> place = all->mutable_bytes();
  append_layer(layers.first, place);
  for (std::size_t index = 1; index < paths.size(); ++index) {
    const absl::StatusOr<Map> frame = frames.next();
    if (!frame.ok()) return frame.status();
    if (job.interrupted()) return absl::CancelledError();
    absl::Status alike = require_same_size(paths[index], *frame, paths.front(), layers.first);
    if (!alike.ok()) return alike;
    append_layer(*frame, place);
    layers.invalid.add(frame->invalid, paths[index]);
    job.stages().advance(static_cast<std::int64_t>(index + 1), static_cast<std::int64_t>(paths.size()));
  }
  layers.all = *std::move(all);
  return layers;
}

/// Of a refusal of several layers, the file that is meant.
absl::Status explain_layers(const absl::Status& refusal, const TableOptions& options) {
  const std::map<std::string, std::string> facts = error_metadata(refusal);
  const auto layer = facts.find("layer");
  const std::size_t index = layer == facts.end() ? 0 : std::stoul(layer->second);
  const std::string& path = options.inputs.at(index);
  const absl::StatusOr<Map> again = read_map(path, options.table.choice);
  return again.ok() ? explain_table_refusal(refusal, path, again->pixels, options.table) : refusal;
}

absl::StatusOr<Result> build_layers(Job& job, const Session& session, const Layers& layers,
                                    const TableOptions& options) {
  const std::string& path = options.inputs.front();
  if (!layers.all.has_value()) return build_table(job, session, path, layers.first, options.table);
  const absl::StatusOr<Buffer> weights = job.upload(session, layers.all->view());
  if (!weights.ok()) return weights.status();
  SamplingTableOptions table = options_for(options.table, layers.first);
  table.layered = true;
  absl::StatusOr<Result> built = job.run(session, "build", build_sampling_table(*weights, table));
  if (!built.ok()) return explain_layers(built.status(), options);
  return built;
}

absl::Status build_of_files(Job& job, const TableOptions& options) {
  const std::string& input = options.inputs.front();
  if (is_table_file(input)) return convert_table(job, options);
  job.begin_read();
  absl::StatusOr<Layers> layers = read_layers(job, options.inputs, options.table.choice);
  if (!layers.ok()) return layers.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const auto built = build_layers(job, *session, *layers, options);
  if (!built.ok()) return built.status();
  const absl::StatusOr<Array> table = job.download(*session, *built, "table");
  if (!table.ok()) return table.status();
  job.stages().begin("write");
  if (absl::Status written = export_table(options.output, table->view(), options.format); !written.ok())
    return written;
  job.stages().end();

  Report& report = job.report();
  report.add("command", "sampling-table");
  layers->first.invalid = layers->invalid;
  describe_table_input(input, layers->first, options.table, report);
  if (options.inputs.size() > 1) report.add("layers", options.inputs.size());
  report.add("output", options.output);
  report.add("table_bytes", table->bytes().size());
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace

absl::Status run_sampling_table(Job& job, const TableOptions& options) {
  absl::StatusOr<std::vector<std::string>> files = files_named_by(options.inputs);
  if (!files.ok()) return files.status();
  TableOptions named = options;
  named.inputs = *std::move(files);
  return build_of_files(job, named);
}

}  // namespace cumulus::cli

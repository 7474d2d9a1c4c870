#include "cli/commands/sampling_table/drawing.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "cli/app/refusal.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/output.h"
#include "cli/files/preview.h"

namespace cumulus::cli {
namespace {

constexpr std::int64_t kBatch = std::int64_t{1} << 20;     // samples a call: bounds memory on both sides
constexpr std::int64_t kMostDots = std::int64_t{1} << 20;  // more would cover the picture

/// Takes the samples batch by batch: writes them, and keeps those that the preview shows.
class SampleSink {
 public:
  explicit SampleSink(const DrawingOptions& options) : options_(options) {
    if (!options.output.empty()) file_.emplace(options.output);
  }

  /// Names the arrays that `batch` lacks as an error. A plane's samples have no direction.
  absl::Status take(const Session& session, Result batch, const CallOptions& call) {
    DownloadOptions download;
    download.call = call;
    std::vector<Column> columns;
    for (const char* name : {"position", "direction", "pdf"}) {
      const Buffer* buffer = batch.buffer(name);
      if (buffer == nullptr) continue;
      absl::StatusOr<std::vector<float>> values = session.download<float>(*buffer, download);
      if (!values.ok()) return values.status();
      const auto width = buffer->shape().size() > 1 ? static_cast<std::size_t>(buffer->shape()[1]) : 1;
      columns.push_back({name, width, *std::move(values)});
    }
    if (columns.size() < 2 || columns.front().name != "position" || columns.back().name != "pdf") {
      return absl::InternalError(
          "the server's samples lack position or pdf; use a cumulus of the server's version");
    }
    keep_dots(columns.front().values);
    if (!file_.has_value() || write(columns)) return absl::OkStatus();
    return file_->commit();  // which tells what is wrong, before more samples are drawn
  }

  absl::Status commit() { return file_.has_value() ? file_->commit() : absl::OkStatus(); }
  const std::vector<PicturePoint>& dots() const { return dots_; }

 private:
  struct Column {
    std::string name;
    std::size_t width;
    std::vector<float> values;
  };

  void keep_dots(const std::vector<float>& positions) {
    if (options_.preview.empty()) return;
    for (std::size_t i = 0; i < positions.size() && dots_.size() < static_cast<std::size_t>(kMostDots);
         i += 2) {
      dots_.push_back({positions[i], positions[i + 1]});
    }
  }

  bool write(const std::vector<Column>& columns) {
    if (!header_written_) {
      const bool directions = columns.size() == 3;
      const std::string header = npy_header(sample_records(directions), {options_.samples.count});
      file_->write(std::as_bytes(std::span(header)));
      header_written_ = true;
    }
    std::vector<float> records;
    const std::size_t count = columns.back().values.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const Column& column : columns) {
        const float* first = column.values.data() + i * column.width;
        records.insert(records.end(), first, first + column.width);
      }
    }
    return file_->write(std::as_bytes(std::span(records)));
  }

  const DrawingOptions& options_;
  std::optional<OutputFile> file_;
  bool header_written_ = false;
  std::vector<PicturePoint> dots_;
};

absl::Status draw_all(Job& job, const Session& session, const Buffer& table, const DrawingOptions& options,
                      SampleSink& sink) {
  job.stages().begin("draw");
  DrawSamplesOptions batch = options.samples;
  if (batch.total == 0)
    batch.total = batch.first_index + batch.count;  // of a Hammersley set, all batches together
  for (std::int64_t done = 0; done < options.samples.count; done += batch.count) {
    batch.first_index = options.samples.first_index + done;
    batch.count = std::min(kBatch, options.samples.count - done);
    absl::StatusOr<Result> drawn = job.accept(session.run(draw_samples(table, batch), job.run()));
    if (!drawn.ok()) return name_fields(drawn.status(), {{"table", options.input}});
    if (absl::Status taken = sink.take(session, *std::move(drawn), job.call()); !taken.ok()) return taken;
    job.stages().advance(done + batch.count, options.samples.count);
  }
  absl::Status written = sink.commit();
  job.stages().end();
  return written;
}

absl::Status write_preview(Job& job, const DrawingOptions& options, const Array& input,
                           const SampleSink& sink) {
  job.stages().begin("preview");
  absl::StatusOr<Map> map = Map();
  if (!options.map.empty()) map = read_map(options.map);
  if (!map.ok()) return map.status();
  const absl::StatusOr<Array> picture =
      render_preview(options.map.empty() ? input.view() : map->pixels.view(), sink.dots());
  if (!picture.ok()) return picture.status();
  absl::Status written = save_preview(options.preview, picture->view());
  job.stages().end();
  return written;
}

std::vector<std::string> files_of(const DrawingOptions& options) {
  std::vector<std::string> files;
  if (!options.output.empty()) files.push_back(options.output);
  if (!options.preview.empty()) files.push_back(options.preview);
  return files;
}

}  // namespace

std::string sample_records(bool directions) {
  return absl::StrCat("[('u', '<f4'), ('v', '<f4'), ", directions ? "('direction', '<f4', (3,)), " : "",
                      "('pdf', '<f4')]");
}

absl::Status run_draw_samples(Job& job, const DrawingOptions& options) {
  const absl::StatusOr<TableOnServer> input = prepare_table(job, options.input, options.table);
  if (!input.ok()) return input.status();
  SampleSink sink(options);
  absl::Status drawn = draw_all(job, input->session(), input->table(), options, sink);
  if (!drawn.ok()) return drawn;
  if (!options.preview.empty()) {
    if (absl::Status written = write_preview(job, options, input->map.pixels, sink); !written.ok())
      return written;
  }
  Report& report = job.report();
  report.add("command", "draw-samples");
  describe_table_input(options.input, input->map, options.table, report);
  if (is_table_file(options.input)) report.add("table_was_resident", input->was_resident);
  report.add("samples", options.samples.count);
  report.add("files", files_of(options));
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace cumulus::cli

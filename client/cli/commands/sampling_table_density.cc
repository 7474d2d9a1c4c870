#include "cli/commands/sampling_table_density.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "cli/npy_file.h"

namespace cumulus::cli {
namespace {

/// NumPy's numbers are float64 unless asked otherwise; the table's are float32.
absl::StatusOr<Array> to_float32(Array points) {
  if (points.type() != ElementType::kFloat64) return points;
  absl::StatusOr<Array> narrow = Array::allocate(ElementType::kFloat32, points.shape());
  if (!narrow.ok()) return narrow;
  const std::size_t count = points.bytes().size() / sizeof(double);
  for (std::size_t i = 0; i < count; ++i) {
    double wide = 0;
    std::memcpy(&wide, points.bytes().data() + i * sizeof(wide), sizeof(wide));
    const auto value = static_cast<float>(wide);
    std::memcpy(narrow->mutable_bytes().data() + i * sizeof(value), &value, sizeof(value));
  }
  return narrow;
}

}  // namespace

absl::Status run_evaluate_density(Job& job, const DensityOptions& options) {
  job.stages().begin("read");
  const absl::StatusOr<Map> input = read_map_or_table(options.input);
  if (!input.ok()) return input.status();
  absl::StatusOr<Array> points = read_npy(options.points);
  if (points.ok()) points = to_float32(*std::move(points));
  if (!points.ok()) return points.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const auto table = prepare_table(job, *session, options.input, input->pixels, options.table);
  if (!table.ok()) return table.status();
  const absl::StatusOr<Buffer> uploaded = job.upload(*session, points->view());
  if (!uploaded.ok()) return uploaded.status();
  const auto evaluated = job.run(*session, "evaluate", evaluate_density(*table, *uploaded));
  if (!evaluated.ok()) return evaluated.status();
  const absl::StatusOr<Array> pdf = job.download(*session, *evaluated, "pdf");
  if (!pdf.ok()) return pdf.status();
  job.stages().begin("write");
  if (absl::Status written = write_npy(options.output, pdf->view()); !written.ok()) return written;
  job.stages().end();

  Report& report = job.report();
  report.add("command", "evaluate-density");
  describe_table_input(options.input, *input, options.table, report);
  report.add("points", pdf->shape()[0]);
  report.add("output", options.output);
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace cumulus::cli

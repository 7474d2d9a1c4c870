#include "cli/commands/sampling_table/density.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cli/app/refusal.h"
#include "cli/commands/sampling_table/drawing.h"
#include "cli/files/elements.h"
#include "cli/files/npy.h"

namespace cumulus::cli {
namespace {

/// By the power of two that brings the longest of its components to 1 up to 2, which changes no direction:
/// of very long and very short ones floats have no squares.
void scale_direction(double* direction) {
  const double longest = std::max({std::abs(direction[0]), std::abs(direction[1]), std::abs(direction[2])});
  if (longest == 0.0 || !std::isfinite(longest)) return;
  const int exponent = std::ilogb(longest);
  for (int axis = 0; axis < 3; ++axis) direction[axis] = std::scalbn(direction[axis], -exponent);
}

/// The first `count` columns of FLOAT32 [rows, columns].
absl::StatusOr<Array> take_columns(const Array& rows, std::size_t count) {
  absl::StatusOr<Array> taken =
      Array::allocate(ElementType::kFloat32, {rows.shape()[0], static_cast<std::int64_t>(count)});
  if (!taken.ok()) return taken;
  const auto* from = reinterpret_cast<const float*>(rows.bytes().data());
  auto* to = reinterpret_cast<float*>(taken->mutable_bytes().data());
  for (std::int64_t row = 0; row < rows.shape()[0]; ++row, from += rows.shape()[1], to += count)
    std::copy_n(from, count, to);
  return taken;
}

/// Of a file of draw-samples the positions, float32 [count, 2]; NOT_FOUND where it is none.
absl::StatusOr<Array> read_drawn(const std::string& path) {
  absl::StatusOr<Array> records = read_npy_records(path, sample_records(true), 6);
  if (absl::IsNotFound(records.status())) records = read_npy_records(path, sample_records(false), 3);
  if (!records.ok()) return records;
  return take_columns(*records, 2);
}

/// Any numbers as the float32 that the server takes; NumPy's are float64 or int64 unless asked otherwise.
absl::StatusOr<Array> read_points(const std::string& path) {
  absl::StatusOr<Array> drawn = read_drawn(path);
  if (!absl::IsNotFound(drawn.status())) return drawn;
  const absl::StatusOr<Array> file = read_npy(path);
  if (!file.ok()) return file.status();
  const Shape& shape = file->shape();
  if (shape.size() != 2 || shape[0] < 1 || (shape[1] != 2 && shape[1] != 3)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has the shape [", absl::StrJoin(shape, ", "),
                     "]; [count, 2], positions, or [count, 3], directions, is right"));
  }
  absl::StatusOr<Array> points = Array::allocate(ElementType::kFloat32, shape);
  if (!points.ok()) return points;
  auto* out = reinterpret_cast<float*>(points->mutable_bytes().data());
  const auto width = static_cast<std::size_t>(shape[1]);
  const std::size_t count = static_cast<std::size_t>(shape[0]) * width;
  with_elements(*file, [&]<class T>(const T* elements) {
    for (std::size_t i = 0; i < count; i += width) {
      double point[3] = {};
      for (std::size_t axis = 0; axis < width; ++axis) {
        point[axis] = static_cast<double>(elements[i + axis]);
      }
      if (width == 3) scale_direction(point);
      for (std::size_t axis = 0; axis < width; ++axis) out[i + axis] = static_cast<float>(point[axis]);
    }
  });
  return points;
}

}  // namespace

absl::Status run_evaluate_density(Job& job, const DensityOptions& options) {
  job.begin_read();
  const absl::StatusOr<Array> points = read_points(options.points);
  if (!points.ok()) return points.status();
  const absl::StatusOr<TableOnServer> input = prepare_table(job, options.input, options.table);
  if (!input.ok()) return input.status();
  const Session& session = input->session();
  const absl::StatusOr<Buffer> uploaded = job.upload(session, points->view());
  if (!uploaded.ok()) return uploaded.status();
  const auto evaluated =
      job.run(session, "evaluate", evaluate_density(input->table(), *uploaded, options.layer));
  if (!evaluated.ok()) {
    return name_fields(evaluated.status(), {{"table", options.input}, {"points", options.points}});
  }
  const absl::StatusOr<Array> pdf = job.download(session, *evaluated, "pdf");
  if (!pdf.ok()) return pdf.status();
  job.stages().begin("write");
  if (absl::Status written = write_npy(options.output, pdf->view()); !written.ok()) return written;
  job.stages().end();

  Report& report = job.report();
  report.add("command", "evaluate-density");
  describe_table_input(options.input, input->map, options.table, report);
  if (is_table_file(options.input)) report.add("table_was_resident", input->was_resident);
  report.add("points", pdf->shape()[0]);
  report.add("output", options.output);
  job.describe_run();
  return absl::OkStatus();
}

}  // namespace cumulus::cli

#include "cli/commands/bracket_match/clips.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/commands/bracket_match/picture.h"
#include "cli/files/input.h"
#include "cli/files/npz.h"
#include "cli/files/preview.h"
#include "cumulus/bracket_match.h"

namespace cumulus::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  std::string preview;
  std::vector<float> view;
};

absl::StatusOr<DrawingScene> read_scene(const Options& options) {
  const absl::StatusOr<std::string> document = read_text(options.input);
  if (!document.ok()) return document.status();
  if (document->find("svg") == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", options.input, ": it has no <svg> element; an SVG drawing is right"));
  }
  std::optional<DrawingBox> view;
  if (!options.view.empty()) view = {options.view[0], options.view[1], options.view[2], options.view[3]};
  absl::StatusOr<DrawingScene> scene = read_drawing(*document, view);
  if (!scene.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.input, ":", std::string(scene.status().message())));
  }
  return scene;
}

ArrayView boxes_view(const std::vector<DrawingBox>& boxes) {
  return {
      ElementType::kFloat32, std::as_bytes(std::span(boxes)), {static_cast<std::int64_t>(boxes.size()), 4}};
}

absl::StatusOr<std::vector<DrawingBox>> intersect(Job& job, const DrawingScene& scene) {
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> elements = job.upload(*session, ArrayView(scene.elements));
  if (!elements.ok()) return elements.status();
  const absl::StatusOr<Buffer> boxes = job.upload(*session, boxes_view(scene.boxes));
  if (!boxes.ok()) return boxes.status();
  const absl::StatusOr<Result> result = job.run(*session, "compute", intersect_clips(*elements, *boxes));
  if (!result.ok()) return result.status();
  const absl::StatusOr<Array> array = job.download(*session, *result, "bounds");
  if (!array.ok()) return array.status();
  std::vector<DrawingBox> bounds(scene.boxes.size());
  if (!bounds.empty()) std::memcpy(bounds.data(), array->bytes().data(), array->bytes().size());
  return bounds;
}

void describe(Report& report, const DrawingScene& scene, const std::vector<DrawingBox>& bounds) {
  std::int64_t clips = 0;
  std::int64_t shapes[3] = {};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (scene.elements[i] == kBeginClip) ++clips;
    if (scene.elements[i] == kDrawElement) {
      ++shapes[static_cast<int>(remainder_of(scene.boxes[i], bounds[i]))];
    }
  }
  report.add("clips", clips);
  report.add("shapes", shapes[0] + shapes[1] + shapes[2]);
  report.add("whole", shapes[static_cast<int>(Remainder::kAll)]);
  report.add("cut", shapes[static_cast<int>(Remainder::kPart)]);
  report.add("culled", shapes[static_cast<int>(Remainder::kNothing)]);
  if (scene.uses > 0) report.add("uses", scene.uses);
  if (scene.texts > 0) report.add("texts_by_estimated_box", scene.texts);
  if (scene.skipped.empty()) return;
  Report skipped;
  for (const auto& [name, count] : scene.skipped) skipped.add(name, count);
  report.add("skipped", std::move(skipped));
}

absl::Status write_files(Job& job, const Options& options, const DrawingScene& scene,
                         const std::vector<DrawingBox>& bounds) {
  job.stages().begin("write");
  if (!options.output.empty()) {
    absl::Status status = write_npz(options.output, {{"element", ArrayView(scene.elements)},
                                                     {"box", boxes_view(scene.boxes)},
                                                     {"bounds", boxes_view(bounds)},
                                                     {"offset", ArrayView(scene.offsets)}});
    if (!status.ok()) return status;
  }
  if (!options.preview.empty()) {
    const absl::StatusOr<Array> picture = draw_clipped_boxes(scene, bounds);
    if (!picture.ok()) return picture.status();
    if (absl::Status status = save_preview(options.preview, picture->view()); !status.ok()) return status;
  }
  job.stages().end();
  return absl::OkStatus();
}

absl::Status run_clip_drawing(Job& job, const Options& options) {
  job.begin_read();
  const absl::StatusOr<DrawingScene> scene = read_scene(options);
  if (!scene.ok()) return scene.status();
  const absl::StatusOr<std::vector<DrawingBox>> bounds = intersect(job, *scene);
  if (!bounds.ok()) return bounds.status();
  if (absl::Status written = write_files(job, options, *scene, *bounds); !written.ok()) return written;
  Report& report = job.report();
  report.add("command", "clip-drawing");
  report.add("input", options.input);
  describe(report, *scene, *bounds);
  if (!options.output.empty()) report.add("output", options.output);
  if (!options.preview.empty()) report.add("preview", options.preview);
  job.describe_run();
  return absl::OkStatus();
}

void check_view(const std::vector<float>& view) {
  if (view.empty() || (view.size() == 4 && view[0] < view[2] && view[1] < view[3])) return;
  throw CLI::ValidationError("--view", "is X0,Y0,X1,Y1 with X0 < X1 and Y0 < Y1");
}

}  // namespace

void add_clip_drawing_command(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = line.add(
      "clip-drawing", "Find what the clips of an SVG drawing leave of each of its shapes, by their boxes",
      [options](Job& job) { return run_clip_drawing(job, *options); },
      [options] { check_view(options->view); });
  command.add_option("input", options->input, "SVG drawing")->required()->type_name("DRAWING.svg");
  const CLI::Validator number(
      [](const std::string& text) {
        float value = 0;  // infinite ones are edges that clip nothing
        if (absl::SimpleAtof(text, &value)) return std::string();
        return absl::StrCat("is ", text.empty() ? "empty" : text, "; a number is right");
      },
      "");
  add_list(command, "--view", options->view, 4, number,
           "One more clip around all, in the drawing's user units")
      .type_name("X0,Y0,X1,Y1");
  line.add_output(command, "-o,--output", options->output,
                  "File to write: element (0 draws, 1 begins, 2 ends a clip), box and bounds of each",
                  OutputFormat::kNpz)
      .type_name("OUT.npz");
  line.add_output(command, "--preview", options->preview,
                  "Picture to write: boxes left whole green, cut ones orange, culled ones red, clips black",
                  OutputFormat::kImage)
      .type_name("OUT.png");
}

}  // namespace cumulus::cli

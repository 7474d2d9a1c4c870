#include "cli/commands/summed_area_table/box_filter.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/refusal.h"
#include "cli/commands/picture_options.h"
#include "cli/commands/summed_area_table/files.h"
#include "cli/files/channels.h"
#include "cli/files/npy.h"
#include "cli/files/picture.h"
#include "cli/files/preview.h"
#include "cumulus/summed_area_table.h"

namespace cumulus::cli {
namespace {

struct FilterFiles {
  std::string input;
  std::string output;
  std::string deviation;
  std::string preview;
  std::string radius_map;
  float radius_scale = 1;
  std::vector<int> radii;                                       // X, or X and Y
  std::vector<BoxBoundary> boundaries = {BoxBoundary::kClamp};  // likewise
  PictureOptions picture;
};

const std::map<std::string, BoxBoundary> kBoundaries = {
    {"exact", BoxBoundary::kExact},   {"zero", BoxBoundary::kZero},       {"clamp", BoxBoundary::kClamp},
    {"repeat", BoxBoundary::kRepeat}, {"reflect", BoxBoundary::kReflect}, {"mirror", BoxBoundary::kMirror}};

/// The means of 8-bit samples as shares of their largest for a picture file; otherwise as they are.
absl::StatusOr<Array> for_file(Array means, const PictureInput& input, const std::string& path) {
  if (input.pixels.type() != ElementType::kUint8 || is_npy(path)) return means;
  const absl::StatusOr<std::span<const float>> values = means.values<float>();
  if (!values.ok()) return values.status();
  absl::StatusOr<Array> scaled = Array::allocate(ElementType::kFloat32, means.shape());
  if (!scaled.ok()) return scaled;
  auto* out = reinterpret_cast<float*>(scaled->mutable_bytes().data());
  for (const float value : *values) *out++ = value / 255.0F;
  return scaled;
}

/// The options of the call; uploads the radius map, if there is one, into `map`, which has to outlive it.
absl::StatusOr<BoxFilterOptions> filter_options(Job& job, const Session& session, const FilterFiles& files,
                                                absl::StatusOr<Buffer>& map) {
  BoxFilterOptions options;
  if (!files.radii.empty()) options.radius = files.radii.front();
  if (!files.radii.empty() && (files.radii.size() > 1 || options.radius == 0)) {
    options.radius_x = files.radii.front();  // of an axis 0 is 0, beside a map too
    options.radius_y = files.radii.back();
  }
  options.boundary_x = files.boundaries.front();
  options.boundary_y = files.boundaries.back();
  options.deviation = !files.deviation.empty();
  options.non_finite = policy_of_server(files.picture);
  if (files.radius_map.empty()) return options;
  absl::StatusOr<Array> radii = read_radius_map(files.radius_map, files.radius_scale);
  if (!radii.ok()) return radii.status();
  map = job.upload(session, *std::move(radii));
  if (!map.ok()) return map.status();
  options.radius_map = Source(*map);
  return options;
}

/// The options that the fields of FilterBox come from, unless they are called the same.
std::vector<FieldName> fields_of(const FilterFiles& files) {
  return {{"image", files.input},
          {"radius_x", "--radius along x"},
          {"radius_y", "--radius along y"},
          {"boundary_x", "--boundary along x"},
          {"boundary_y", "--boundary along y"}};
}

struct Filtered {
  FileArray image;
  FileArray deviation;  // where one was asked for
};

/// Where they come whole they go into `image` and `deviation` meanwhile, if those are .npy files.
struct Outputs {
  std::string image = {};
  std::string deviation = {};
};

absl::StatusOr<Filtered> filter_array(Job& job, const Session& session, const ArrayView& image,
                                      const FilterFiles& files, const BoxFilterOptions& options,
                                      const Outputs& outputs) {
  const absl::StatusOr<Buffer> buffer = job.upload(session, image);
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<Result> result = job.run(session, "compute", filter_box(*buffer, options));
  if (!result.ok()) return name_fields(result.status(), fields_of(files));
  Filtered filtered;
  absl::StatusOr<FileArray> means = job.download_for(outputs.image, session, *result, "image");
  if (!means.ok()) return means.status();
  filtered.image = *std::move(means);
  if (!options.deviation) return filtered;
  absl::StatusOr<FileArray> deviation = job.download_for(outputs.deviation, session, *result, "deviation");
  if (!deviation.ok()) return deviation.status();
  filtered.deviation = *std::move(deviation);
  return filtered;
}

/// Also of an image with more channels than one call takes.
absl::StatusOr<Filtered> filter_all(Job& job, const Session& session, const ArrayView& image,
                                    const FilterFiles& files, const BoxFilterOptions& options,
                                    const Outputs& outputs) {
  constexpr std::int64_t kAtOnce = 4;
  const Shape& shape = image.shape();
  if (shape.size() != 3 || shape[2] <= kAtOnce)
    return filter_array(job, session, image, files, options, outputs);
  Filtered all;
  for (Array* part : {&all.image.array, &all.deviation.array}) {
    absl::StatusOr<Array> whole = Array::allocate(ElementType::kFloat32, shape);
    if (!whole.ok()) return whole.status();
    *part = *std::move(whole);
  }
  for (std::int64_t first = 0; first < shape[2]; first += kAtOnce) {
    std::vector<int> channels;
    for (std::int64_t channel = first; channel < std::min(first + kAtOnce, shape[2]); ++channel)
      channels.push_back(static_cast<int>(channel));
    const absl::StatusOr<Array> part = take_channels(image, channels);
    if (!part.ok()) return part.status();
    const absl::StatusOr<Filtered> filtered = filter_array(job, session, part->view(), files, options, {});
    if (!filtered.ok()) return filtered.status();
    put_channels(filtered->image.array.view(), static_cast<std::size_t>(first), all.image.array);
    if (options.deviation)
      put_channels(filtered->deviation.array.view(), static_cast<std::size_t>(first), all.deviation.array);
  }
  return all;
}

absl::Status write_filtered(Job& job, const FilterFiles& files, const std::string& path,
                            const PictureInput& input, FileArray filtered) {
  absl::StatusOr<Array> picture = for_file(std::move(filtered.array), input, path);
  if (!picture.ok()) return picture.status();
  filtered.array = *std::move(picture);
  job.stages().begin("write");
  absl::Status written = write_picture(path, filtered, input, files.picture, true);
  job.stages().end();
  return written;
}

absl::StatusOr<PictureInput> read_input(const FilterFiles& files, bool dry_run) {
  absl::StatusOr<PictureInput> input =
      read_picture(files.input, ReadAs::kFloats, searched_by_server(files.picture, dry_run), true);
  if (!input.ok()) return input;
  if (!files.preview.empty() && input->integers.has_value()) {
    return absl::InvalidArgumentError(
        "--preview: is for floating-point images; of 8-bit ones --output can be a picture, if its name ends "
        "with .png: leave --preview out");
  }
  return input;
}

void describe(Report& report, const FilterFiles& files, const PictureInput& input,
              const std::string& output) {
  report.add("command", "box-filter");
  report.add("input", files.input);
  report.add("element_type_in", std::string(element_name(input.pixels.type())));
  const Shape& shape = input.pixels.shape();
  if (shape.size() == 2 || shape.size() == 3) {
    report.add("width", shape[1]);
    report.add("height", shape[0]);
    report.add("channels", shape.size() == 3 ? shape[2] : 1);
  }
  if (!files.radii.empty()) {
    report.add("radius_x", files.radii.front());
    report.add("radius_y", files.radii.back());
  }
  if (!files.radius_map.empty()) report.add("radius_map", files.radius_map);
  report.add("output", output);
  if (!files.deviation.empty()) report.add("deviation", files.deviation);
  describe_picture(input, files.picture, {output, files.deviation}, report, coding_warnings(input, output));
}

absl::Status run_box_filter(Job& job, const FilterFiles& files) {
  job.begin_read();
  absl::StatusOr<PictureInput> input = read_input(files, job.dry_run());
  if (!input.ok()) return input.status();
  const std::string output = named_like(files.output, input->image.has_value() ? &*input->image : nullptr);
  for (const std::string& path : {output, files.deviation}) {
    if (path.empty()) continue;
    if (absl::Status room = check_room(path, *input, files.picture, true); !room.ok()) return room;
  }
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  absl::StatusOr<Buffer> map = absl::NotFoundError("no radius map");
  const absl::StatusOr<BoxFilterOptions> options = filter_options(job, *session, files, map);
  if (!options.ok()) return options.status();
  absl::StatusOr<Filtered> filtered = filter_all(job, *session, input->pixels.view(), files, *options,
                                                 {.image = output, .deviation = files.deviation});
  if (!filtered.ok()) return count_non_finite(filtered.status(), *input, input->pixels);
  absl::Status written = write_preview(job.stages(), files.preview, filtered->image.array.view());
  if (written.ok()) written = write_filtered(job, files, output, *input, std::move(filtered->image));
  if (written.ok() && !files.deviation.empty())
    written = write_filtered(job, files, files.deviation, *input, std::move(filtered->deviation));
  if (!written.ok()) return written;
  describe(job.report(), files, *input, output);
  job.describe_run();
  return absl::OkStatus();
}

void require_what_goes_together(const FilterFiles& files) {
  if (files.radii.empty() && files.radius_map.empty())
    throw CLI::ValidationError("--radius", "a radius, or --radius-map, is needed");
}

}  // namespace

void add_box_filter_command(CommandLine& line) {
  constexpr std::int64_t kMostRadius = std::numeric_limits<int>::max();
  const auto files = std::make_shared<FilterFiles>();
  CLI::App& filter = line.add(
      "box-filter", "Replace each pixel by the mean of the box around it",
      [files](Job& job) { return run_box_filter(job, *files); },
      [files] { require_what_goes_together(*files); });
  filter.add_option("input", files->input, "Image file, or a .npy file of numbers")
      ->required()
      ->type_name("IN");
  line.add_output(filter, "-o,--output", files->output, "Image file to write, or .npy",
                  OutputFormat::kImageOrNpy)
      .required();
  add_list(
      filter, "--radius", files->radii, 2, whole_number_within(0, kMostRadius),
      "The box has 2 * radius + 1 pixels a side; 0 to the larger of the image's width and height; X,Y for "
      "one along each axis; with a radius map the most that it may ask for")
      .type_name("PIXELS[,PIXELS]");
  CLI::Option* map =
      filter
          .add_option(
              "--radius-map", files->radius_map,
              "Image or .npy file of the same size: its first channel is the radius at each pixel, in "
              "pixels, rounded; integers count as they are, 255 of an 8-bit file as 255")
          ->type_name("MAP");
  filter.add_option("--radius-scale", files->radius_scale, "Pixels for a 1 of the radius map (default 1)")
      ->check(number_within(0))
      ->needs(map)
      ->type_name("PIXELS");
  add_list(
      filter, "--boundary", files->boundaries, 2, one_of(kBoundaries),
      "Beyond the border: zero, clamp (the default), repeat, reflect (half-sample), mirror (whole-sample) or "
      "exact (the mean of what lies inside); X,Y for one along each axis: repeat,clamp for a lat-long map")
      .type_name("NAME[,NAME]");
  add_picture_choice(filter, files->picture.choice);
  add_non_finite_policy(filter, files->picture.non_finite);
  add_picture_output(filter, files->picture);
  line.add_output(filter, "--deviation", files->deviation, "File for the standard deviations over the box",
                  OutputFormat::kImageOrNpy);
  line.add_output(filter, "--preview", files->preview,
                  "Picture of the result to write, tone-mapped; of floating-point images",
                  OutputFormat::kImage)
      .type_name("OUT.png");
}

}  // namespace cumulus::cli

#include "cumulus/summed_area_table.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/image_file.h"
#include "cli/npy_file.h"
#include "cli/picture_file.h"
#include "cli/preview.h"

namespace cumulus::cli {
namespace {

/// Without a file format for it, a 64-bit sum would be lost in silence.
std::string stored_type(const std::string& path, ElementType type) {
  const bool narrowed = type == ElementType::kFloat64 && std::filesystem::path(path).extension() == ".exr";
  return std::string(element_name(narrowed ? ElementType::kFloat32 : type));
}

/// An image file, or a .npy file of any numbers.
absl::StatusOr<Array> read_input(const std::string& path) {
  return is_npy(path) ? read_npy(path) : read_image(path);
}

absl::Status write_array(Job& job, const std::string& path, const ArrayView& array,
                         std::optional<ElementType> samples = std::nullopt) {
  job.stages().begin("write");
  absl::Status status =
      is_npy(path) ? write_npy(path, array) : write_image(path, array, Colours::kMultipliedByAlpha, samples);
  job.stages().end();
  return status;
}

void describe_input(Job& job, const std::string& path, const Array& image) {
  const Shape& shape = image.shape();
  job.report().add("input", path);
  job.report().add("element_type_in", std::string(element_name(image.type())));
  if (shape.size() != 2 && shape.size() != 3) return;
  job.report().add("width", shape[1]);
  job.report().add("height", shape[0]);
  job.report().add("channels", shape.size() == 3 ? shape[2] : 1);
}

struct TableFiles {
  std::string input;
  std::string output;
  std::string squares;
  std::string offsets;
  std::string accumulator;  // empty: the default
  SummedAreaTableOptions table;
};

const std::map<std::string, ElementType> kAccumulators = {{"uint32", ElementType::kUint32},
                                                          {"uint64", ElementType::kUint64},
                                                          {"int64", ElementType::kInt64},
                                                          {"float32", ElementType::kFloat32},
                                                          {"float64", ElementType::kFloat64}};

void require_files_of_large_numbers(const TableFiles& files) {
  for (const auto& [option, path] :
       {std::pair("--output", files.output), std::pair("--squares", files.squares)}) {
    if (path.empty() || is_npy(path) || holds_floats(path)) continue;
    throw CLI::ValidationError(option,
                               "sums need a file of large numbers: end its name with .exr, .tif or .npy");
  }
  if (!files.offsets.empty() && !is_npy(files.offsets))
    throw CLI::ValidationError("--subtract-mean", "the means go into a file whose name ends with .npy");
}

/// Downloads the array `name` and writes it; nothing where there is no file for it.
absl::Status save(Job& job, const Session& session, const Result& result, const std::string& name,
                  const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const absl::StatusOr<Array> array = job.download(session, result, name);
  if (!array.ok()) return array.status();
  return write_array(job, path, array->view());
}

absl::Status run_summed_area_table(Job& job, const TableFiles& files) {
  job.stages().begin("read");
  const absl::StatusOr<Array> image = read_input(files.input);
  if (!image.ok()) return image.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  SummedAreaTableOptions options = files.table;
  if (!files.accumulator.empty()) options.accumulator = kAccumulators.at(files.accumulator);
  options.squares = !files.squares.empty();
  if (!files.offsets.empty()) options.precision = SumPrecision::kMeanSubtracted;
  const absl::StatusOr<Result> result =
      job.run(*session, "compute", build_summed_area_table(*buffer, options));
  if (!result.ok()) return result.status();
  const absl::StatusOr<Array> sums = job.download(*session, *result, "sums");
  if (!sums.ok()) return sums.status();
  if (absl::Status written = write_array(job, files.output, sums->view()); !written.ok()) return written;
  absl::Status saved = save(job, *session, *result, "squares", files.squares);
  if (saved.ok()) saved = save(job, *session, *result, "offsets", files.offsets);
  if (!saved.ok()) return saved;
  job.report().add("command", "summed-area-table");
  describe_input(job, files.input, *image);
  job.report().add("output", files.output);
  job.report().add("element_type", std::string(element_name(sums->type())));
  job.report().add("stored_as", stored_type(files.output, sums->type()));
  if (!files.squares.empty()) job.report().add("squares", files.squares);
  if (!files.offsets.empty()) job.report().add("offsets", files.offsets);
  job.describe_run();
  return absl::OkStatus();
}

struct FilterFiles {
  std::string input;
  std::string output;
  std::string deviation;
  std::string preview;
  std::string radius_map;
  float radius_scale = 1;
  std::vector<int> radii;                                       // X, or X and Y
  std::vector<BoxBoundary> boundaries = {BoxBoundary::kExact};  // likewise
};

const std::map<std::string, BoxBoundary> kBoundaries = {{"exact", BoxBoundary::kExact},
                                                        {"zero", BoxBoundary::kZero},
                                                        {"clamp", BoxBoundary::kClamp},
                                                        {"repeat", BoxBoundary::kRepeat},
                                                        {"reflect", BoxBoundary::kReflect}};

/// The means of 8-bit samples as 8-bit samples again for a picture file, which would take 1.0 as white;
/// otherwise as they are.
absl::StatusOr<Array> for_file(Array means, std::optional<ElementType> integers, const std::string& path) {
  if (integers != ElementType::kUint8 || is_npy(path)) return means;
  const absl::StatusOr<std::span<const float>> values = means.values<float>();
  if (!values.ok()) return values.status();
  absl::StatusOr<Array> scaled = Array::allocate(ElementType::kFloat32, means.shape());
  if (!scaled.ok()) return scaled;
  auto* out = reinterpret_cast<float*>(scaled->mutable_bytes().data());
  for (const float value : *values) *out++ = value / 255.0F;
  return scaled;
}

/// The first channel of a picture as radii in pixels: [height, width], float32.
absl::StatusOr<Array> read_radius_map(const FilterFiles& files) {
  const absl::StatusOr<Array> picture = read_picture(files.radius_map);
  if (!picture.ok()) return picture.status();
  const Shape& shape = picture->shape();
  absl::StatusOr<Array> radii = Array::allocate(ElementType::kFloat32, {shape[0], shape[1]});
  if (!radii.ok()) return radii;
  auto* out = reinterpret_cast<float*>(radii->mutable_bytes().data());
  const auto channels = static_cast<std::size_t>(shape[2]);
  const auto pixels = static_cast<std::size_t>(shape[0] * shape[1]);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(picture->bytes().data());
  const auto* floats = reinterpret_cast<const float*>(picture->bytes().data());
  for (std::size_t i = 0; i < pixels; ++i) {
    const float value = picture->type() == ElementType::kUint8 ? static_cast<float>(bytes[i * channels])
                                                               : floats[i * channels];
    out[i] = value * files.radius_scale;
  }
  return radii;
}

/// The options of the call; uploads the radius map, if there is one, into `map`, which has to outlive it.
absl::StatusOr<BoxFilterOptions> filter_options(Job& job, const Session& session, const FilterFiles& files,
                                                absl::StatusOr<Buffer>& map) {
  BoxFilterOptions options;
  options.radius = files.radii.empty() ? 0 : files.radii.front();
  options.radius_y = files.radii.empty() ? 0 : files.radii.back();
  options.boundary_x = files.boundaries.front();
  options.boundary_y = files.boundaries.back();
  options.deviation = !files.deviation.empty();
  if (files.radius_map.empty()) return options;
  const absl::StatusOr<Array> radii = read_radius_map(files);
  if (!radii.ok()) return radii.status();
  map = job.upload(session, radii->view());
  if (!map.ok()) return map.status();
  options.radius_map = Source(*map);
  return options;
}

/// The means of integer samples go into files of integers too, of as many bits; others do not.
absl::Status require_room(const FilterFiles& files, std::optional<ElementType> integers) {
  for (const std::string& path : {files.output, files.deviation}) {
    if (path.empty() || integers.has_value() || is_npy(path) || holds_floats(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the means of floating-point pixels do not fit into ",
                                                   path, "; end its name with .exr, .tif, .hdr or .npy"));
  }
  return absl::OkStatus();
}

absl::Status write_filtered(Job& job, const FilterFiles& files, const std::string& path,
                            std::optional<ElementType> integers, Array filtered) {
  if (path == files.output) {
    absl::Status written = write_preview(job.stages(), files.preview, filtered.view());
    if (!written.ok()) return written;
  }
  const absl::StatusOr<Array> picture = for_file(std::move(filtered), integers, path);
  if (!picture.ok()) return picture.status();
  return write_array(job, path, picture->view(), holds_floats(path) ? std::nullopt : integers);
}

absl::Status run_box_filter(Job& job, const FilterFiles& files) {
  job.stages().begin("read");
  const absl::StatusOr<Array> image = read_input(files.input);
  if (!image.ok()) return image.status();
  if (!files.preview.empty() && image->type() == ElementType::kUint8) {
    return absl::InvalidArgumentError(absl::StrCat("a preview is for floating-point images; ", files.output,
                                                   " can be a picture itself: leave --preview out"));
  }
  const std::optional<ElementType> integers = integer_samples(files.input, *image);
  if (absl::Status room = require_room(files, integers); !room.ok()) return room;
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  absl::StatusOr<Buffer> map = absl::NotFoundError("no radius map");
  const absl::StatusOr<BoxFilterOptions> options = filter_options(job, *session, files, map);
  if (!options.ok()) return options.status();
  const absl::StatusOr<Result> result = job.run(*session, "compute", filter_box(*buffer, *options));
  if (!result.ok()) return result.status();
  for (const auto& [name, path] :
       {std::pair("image", files.output), std::pair("deviation", files.deviation)}) {
    if (path.empty()) continue;
    absl::StatusOr<Array> filtered = job.download(*session, *result, name);
    if (!filtered.ok()) return filtered.status();
    absl::Status written = write_filtered(job, files, path, integers, *std::move(filtered));
    if (!written.ok()) return written;
  }
  job.report().add("command", "box-filter");
  describe_input(job, files.input, *image);
  if (!files.radii.empty()) {
    job.report().add("radius_x", files.radii.front());
    job.report().add("radius_y", files.radii.back());
  }
  if (!files.radius_map.empty()) job.report().add("radius_map", files.radius_map);
  job.report().add("output", files.output);
  if (!files.deviation.empty()) job.report().add("deviation", files.deviation);
  job.describe_run();
  return absl::OkStatus();
}

void add_summed_area_table(CommandLine& line) {
  const auto files = std::make_shared<TableFiles>();
  CLI::App& table = line.add(
      "summed-area-table",
      "Sum an image's pixels from the top left corner to each pixel. Sums of float pixels are float64: .npy "
      "and .tif "
      "keep them, .exr stores them as float32",
      [files](Job& job) { return run_summed_area_table(job, *files); },
      [files] { require_files_of_large_numbers(*files); });
  table.add_option("input", files->input, "Image file, or a .npy file of numbers")
      ->required()
      ->type_name("IN");
  line.add_output(table, "-o,--output", files->output, "File to write: .npy, .tif or .exr",
                  OutputFormat::kImageOrNpy)
      .required();
  table
      .add_option("--accumulator", files->accumulator,
                  "Type of the sums: uint32, uint64, int64, float32 or float64")
      ->check(CLI::IsMember(kAccumulators));
  table.add_flag("--exclusive", files->table.exclusive, "Begin the table with a row and a column of zeros");
  table.add_flag("--wrap", files->table.wrap, "Let integer sums that are too large wrap around");
  CLI::Option& squares =
      line.add_output(table, "--squares", files->squares, "File for the sums of the squared pixels",
                      OutputFormat::kImageOrNpy);
  line.add_output(table, "--subtract-mean", files->offsets,
                  "Sum the pixels less their channel's mean, in float32; .npy file for the means")
      .excludes(&squares);
}

void require_what_goes_together(const FilterFiles& files) {
  if (files.radii.empty() && files.radius_map.empty())
    throw CLI::ValidationError("--radius", "a radius, or --radius-map, is needed");
}

void add_box_filter(CommandLine& line) {
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
      "The box has 2 * radius + 1 pixels a side; X,Y for one along each axis; with a radius map the most "
      "that it may ask for")
      .type_name("PIXELS[,PIXELS]");
  filter
      .add_option("--radius-map", files->radius_map,
                  "Image file of the same size: its first channel is the radius at each pixel, in pixels; "
                  "255 of 8-bit files counts as 255")
      ->type_name("MAP");
  filter.add_option("--radius-scale", files->radius_scale, "Pixels for a 1 of the radius map (default 1)")
      ->check(number_within(0))
      ->type_name("PIXELS");
  add_list(
      filter, "--boundary", files->boundaries, 2, one_of(kBoundaries),
      "Beyond the border: exact (the mean of the pixels inside), zero, clamp, repeat or reflect; X,Y for "
      "one along each axis (repeat,clamp for a lat-long map)")
      .type_name("NAME[,NAME]");
  line.add_output(filter, "--deviation", files->deviation, "File for the standard deviations over the box",
                  OutputFormat::kImageOrNpy);
  line.add_output(filter, "--preview", files->preview,
                  "Picture of the result to write, tone-mapped; of floating-point images",
                  OutputFormat::kImage)
      .type_name("OUT.png");
}

}  // namespace

void add_summed_area_table_commands(CommandLine& line) {
  line.add_bench_row(
      {"summed-area-table", bench_image, [](const Buffer& image) { return build_summed_area_table(image); }});
  add_summed_area_table(line);
  add_box_filter(line);
}

}  // namespace cumulus::cli

#include <absl/strings/str_cat.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/app/refusal.h"
#include "cli/commands/summed_area_table/files.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/picture.h"
#include "cli/files/preview.h"
#include "cumulus/summed_area_table.h"

namespace cumulus::cli {
namespace {

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
  std::optional<ElementType> accumulator;  // absent: the default
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
    if (path.empty() || holds_sums(path)) continue;
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
  absl::StatusOr<Array> array = job.download(session, result, name);
  if (!array.ok()) return array.status();
  const absl::StatusOr<Array> table = table_for_file(*std::move(array), path);
  if (!table.ok()) return table.status();
  return write_array(job, path, table->view());
}

absl::Status require_floats(const TableFiles& files, ElementType type) {
  if (files.offsets.empty() || type == ElementType::kFloat16 || type == ElementType::kFloat32)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--subtract-mean: is for float16 and float32 pixels; those of ", files.input, " are ",
                   std::string(element_name(type)), ": leave it out"));
}

/// What lets integer sums that are too large pass; of other images nothing.
std::string advice_on_overflow(const TableFiles& files, ElementType type) {
  if (files.table.wrap || (type != ElementType::kUint8 && type != ElementType::kUint16)) return "";
  return files.squares.empty() ? "--accumulator uint64, or --wrap" : "--wrap lets the sums wrap around";
}

/// The options that the fields of BuildSummedAreaTable come from.
std::vector<FieldName> fields_of(const TableFiles& files, ElementType type) {
  const std::string advice = advice_on_overflow(files, type);
  return {{"image", files.input},
          {"accumulator", "--accumulator", advice},
          {"squares", "--squares", advice},
          {"precision", "--subtract-mean"}};
}

absl::Status run_summed_area_table(Job& job, const TableFiles& files) {
  job.stages().begin("read");
  const absl::StatusOr<Array> image =
      is_npy(files.input) ? read_npy(files.input) : read_image_samples(files.input);
  if (!image.ok()) return image.status();
  if (absl::Status status = require_floats(files, image->type()); !status.ok()) return status;
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  SummedAreaTableOptions options = files.table;
  options.accumulator = files.accumulator;
  options.squares = !files.squares.empty();
  if (!files.offsets.empty()) options.precision = SumPrecision::kMeanSubtracted;
  const absl::StatusOr<Result> result =
      job.run(*session, "compute", build_summed_area_table(*buffer, options));
  if (!result.ok()) return name_fields(result.status(), fields_of(files, image->type()));
  absl::Status saved = save(job, *session, *result, "sums", files.output);
  if (saved.ok()) saved = save(job, *session, *result, "squares", files.squares);
  if (saved.ok()) saved = save(job, *session, *result, "offsets", files.offsets);
  if (!saved.ok()) return saved;
  const ElementType sums = result->buffer("sums")->type();
  job.report().add("command", "summed-area-table");
  describe_input(job, files.input, *image);
  job.report().add("output", files.output);
  job.report().add("element_type", std::string(element_name(sums)));
  job.report().add("stored_as", std::string(element_name(stored_type(files.output, sums))));
  if (!files.squares.empty()) job.report().add("squares", files.squares);
  if (!files.offsets.empty()) job.report().add("offsets", files.offsets);
  warn_of_what_spreads(*image, job.report());
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
  if (files.radius_map.empty()) return options;
  absl::StatusOr<Array> radii = read_radius_map(files.radius_map, files.radius_scale);
  if (!radii.ok()) return radii.status();
  map = job.upload(session, *std::move(radii));
  if (!map.ok()) return map.status();
  options.radius_map = Source(*map);
  return options;
}

/// The means of an image file's integers go into files of integers too, of as many bits; others do not.
absl::Status require_room(const FilterFiles& files, ElementType type, std::optional<ElementType> integers) {
  for (const std::string& path : {files.output, files.deviation}) {
    if (path.empty() || integers.has_value() || is_npy(path) || holds_floats(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the means of ", std::string(element_name(type)),
                                                   " pixels do not fit into ", path,
                                                   "; end its name with .exr, .tif, .hdr or .npy"));
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

/// The options that the fields of FilterBox come from, unless they are called the same.
std::vector<FieldName> fields_of(const FilterFiles& files) {
  return {{"image", files.input},
          {"radius_x", "--radius along x"},
          {"radius_y", "--radius along y"},
          {"boundary_x", "--boundary along x"},
          {"boundary_y", "--boundary along y"}};
}

absl::Status run_box_filter(Job& job, const FilterFiles& files) {
  job.stages().begin("read");
  const absl::StatusOr<Array> image = read_input(files.input);
  if (!image.ok()) return image.status();
  if (!files.preview.empty() && image->type() == ElementType::kUint8) {
    return absl::InvalidArgumentError(
        "--preview: is for floating-point images; of 8-bit ones --output can be a picture, if its name ends "
        "with .png: leave --preview out");
  }
  const std::optional<ElementType> integers = integer_samples(files.input, *image);
  if (absl::Status room = require_room(files, image->type(), integers); !room.ok()) return room;
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  absl::StatusOr<Buffer> map = absl::NotFoundError("no radius map");
  const absl::StatusOr<BoxFilterOptions> options = filter_options(job, *session, files, map);
  if (!options.ok()) return options.status();
  const absl::StatusOr<Result> result = job.run(*session, "compute", filter_box(*buffer, *options));
  if (!result.ok()) return name_fields(result.status(), fields_of(files));
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
  warn_of_what_spreads(*image, job.report());
  job.describe_run();
  return absl::OkStatus();
}

void add_summed_area_table(CommandLine& line) {
  const auto files = std::make_shared<TableFiles>();
  CLI::App& table = line.add(
      "summed-area-table",
      "Sum an image's pixels, as its file has them (255 of 8-bit files, 65535 of 16-bit ones is white), "
      "from the top left corner to each pixel. .npy files keep every type of sums; .tif stores 64-bit "
      "integers as float64, .exr all types of 64 bits as float32",
      [files](Job& job) { return run_summed_area_table(job, *files); },
      [files] { require_files_of_large_numbers(*files); });
  table.add_option("input", files->input, "Image file, or a .npy file of numbers")
      ->required()
      ->type_name("IN");
  line.add_output(table, "-o,--output", files->output, "File to write: .npy, .tif or .exr",
                  OutputFormat::kImageOrNpy)
      .required();
  table
      .add_option(
          "--accumulator", files->accumulator,
          "Type of the sums, the default first: of uint8 pixels uint32 or uint64; of uint16 uint64 or "
          "uint32; of uint32 uint64; of int32 int64; of float16 and float32 float64 or float32; of "
          "float64 float64")
      ->transform(one_of(kAccumulators))
      ->type_name("TYPE");
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

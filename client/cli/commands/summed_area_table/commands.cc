#include <absl/strings/str_cat.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/app/refusal.h"
#include "cli/commands/picture_options.h"
#include "cli/commands/summed_area_table/box_filter.h"
#include "cli/commands/summed_area_table/files.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/picture.h"
#include "cumulus/summed_area_table.h"

namespace cumulus::cli {
namespace {

void describe_input(Job& job, const PictureInput& input) {
  const Array& image = input.pixels;
  const Shape& shape = image.shape();
  job.report().add("input", input.path);
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
  PictureOptions picture;
};

const std::map<std::string, ElementType> kAccumulators = {{"uint32", ElementType::kUint32},
                                                          {"uint64", ElementType::kUint64},
                                                          {"int64", ElementType::kInt64},
                                                          {"float32", ElementType::kFloat32},
                                                          {"float64", ElementType::kFloat64}};

void require_files_of_large_numbers(const TableFiles& files) {
  for (const auto& [option, path] :
       {std::pair("--output", files.output), std::pair("--squares", files.squares)}) {
    if (path.empty() || path == "-" || holds_sums(path)) continue;
    throw CLI::ValidationError(option,
                               "sums need a file of large numbers: end its name with .exr, .tif or .npy");
  }
  if (!files.offsets.empty() && !is_npy(files.offsets))
    throw CLI::ValidationError("--subtract-mean", "the means go into a file whose name ends with .npy");
}

/// Downloads the array `name` and writes it; nothing where there is no file for it.
absl::Status save(Job& job, const Session& session, const Result& result, const std::string& name,
                  const std::string& path, const PictureInput& input) {
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<FileArray> table = job.download_for(path, session, result, name);
  if (!table.ok()) return table.status();
  absl::StatusOr<Array> stored = table_for_file(std::move(table->array), path);
  if (!stored.ok()) return stored.status();
  table->array = *std::move(stored);
  job.stages().begin("write");
  absl::Status written = write_picture(path, *table, input, {}, false);
  job.stages().end();
  return written;
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

/// The picture whose sums are asked for. Sums of halves are no halves, and lose nothing when they are stored.
absl::StatusOr<PictureInput> read_summands(const TableFiles& files) {
  absl::StatusOr<PictureInput> input = read_picture(files.input, ReadAs::kSamples, files.picture);
  if (!input.ok()) return input;
  if (input->image.has_value()) {
    input->image->channel_samples.clear();
    input->image->metadata.compression.clear();  // DWA, say, would change them
  }
  if (absl::Status status = require_floats(files, input->pixels.type()); !status.ok()) return status;
  return input;
}

SummedAreaTableOptions table_options(const TableFiles& files) {
  SummedAreaTableOptions options = files.table;
  options.accumulator = files.accumulator;
  options.squares = !files.squares.empty();
  if (!files.offsets.empty()) options.precision = SumPrecision::kMeanSubtracted;
  return options;
}

absl::Status run_summed_area_table(Job& job, const TableFiles& files) {
  job.begin_read();
  const absl::StatusOr<PictureInput> input = read_summands(files);
  if (!input.ok()) return input.status();
  const Array& image = input->pixels;
  const std::string output = named_like(files.output, nullptr);
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image.view());
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<Result> result =
      job.run(*session, "compute", build_summed_area_table(*buffer, table_options(files)));
  if (!result.ok()) return name_fields(result.status(), fields_of(files, image.type()));
  absl::Status saved = save(job, *session, *result, "sums", output, *input);
  if (saved.ok()) saved = save(job, *session, *result, "squares", files.squares, *input);
  if (saved.ok()) saved = save(job, *session, *result, "offsets", files.offsets, *input);
  if (!saved.ok()) return saved;
  const ElementType sums = result->buffer("sums")->type();
  job.report().add("command", "summed-area-table");
  describe_input(job, *input);
  job.report().add("output", output);
  job.report().add("element_type", std::string(element_name(sums)));
  job.report().add("stored_as", std::string(element_name(stored_type(output, sums))));
  if (!files.squares.empty()) job.report().add("squares", files.squares);
  if (!files.offsets.empty()) job.report().add("offsets", files.offsets);
  describe_picture(*input, files.picture, {output}, job.report());
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
  add_picture_choice(table, files->picture.choice);
  add_non_finite_policy(table, files->picture.non_finite);
  line.add_output(table, "--subtract-mean", files->offsets,
                  "Sum the pixels less their channel's mean, in float32; .npy file for the means",
                  OutputFormat::kNpy)
      .excludes(&squares);
}

}  // namespace

void add_summed_area_table_commands(CommandLine& line) {
  line.add_bench_row(
      {"summed-area-table", bench_image, [](const Buffer& image) { return build_summed_area_table(image); }});
  add_summed_area_table(line);
  add_box_filter_command(line);
}

}  // namespace cumulus::cli

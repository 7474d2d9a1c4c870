#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/commands/picture_options.h"
#include "cli/commands/sampling_table/building.h"
#include "cli/commands/sampling_table/density.h"
#include "cli/commands/sampling_table/drawing.h"
#include "cli/commands/sampling_table/table_export.h"
#include "cli/commands/sampling_table/video.h"
#include "cli/files/extension.h"
#include "cumulus/sampling.h"
#include "cumulus/sampling_table.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, MapProjection> kProjections = {{"lat-long", MapProjection::kLatLong},
                                                           {"plane", MapProjection::kPlane},
                                                           {"equal-area", MapProjection::kEqualArea}};
const std::map<std::string, MapInterpolation> kInterpolations = {{"constant", MapInterpolation::kConstant},
                                                                 {"bilinear", MapInterpolation::kBilinear}};
const std::map<std::string, InvalidWeights> kInvalidWeights = {{"refuse", InvalidWeights::kRefuse},
                                                               {"clamp", InvalidWeights::kClamp}};
const std::map<std::string, Luminance> kLuminances = {{"rec709", Luminance::kRec709},
                                                      {"rec2020", Luminance::kRec2020},
                                                      {"acescg", Luminance::kAcesCg},
                                                      {"average", Luminance::kAverage}};
const std::map<std::string, SamplingMethod> kMethods = {{"radix-forest", SamplingMethod::kRadixForest},
                                                        {"balanced-forest", SamplingMethod::kBalancedForest},
                                                        {"cutpoint-binary", SamplingMethod::kCutpointBinary},
                                                        {"binary-search", SamplingMethod::kBinarySearch},
                                                        {"alias", SamplingMethod::kAlias}};
const std::map<std::string, PointSequence> kSequences = {{"sobol", PointSequence::kSobol},
                                                         {"hammersley", PointSequence::kHammersley},
                                                         {"random", PointSequence::kRandom}};

const std::map<std::string, TableFormat> kExports = {
    {"npz", TableFormat::kNpz}, {"pbrt", TableFormat::kPbrt}, {"mitsuba", TableFormat::kMitsuba}};

using OptionList = std::vector<const CLI::Option*>;

/// Of the options that say how an image becomes a table: a table is one already.
void refuse_given(const OptionList& options, const std::string& table) {
  if (!is_table_file(table)) return;
  for (const CLI::Option* option : options) {
    if (option->count() == 0) continue;
    throw CLI::ValidationError(option->get_name(),
                               "is for an image, and " + table + " is a table already: leave it out");
  }
}

void require_another_format(const TableOptions& options) {
  for (const std::string& input : options.inputs) {
    if (!is_table_file(input) || (options.format != TableFormat::kCst && options.inputs.size() == 1))
      continue;
    throw CLI::ValidationError("sampling-table", input + " is a table already: give an image, or --export");
  }
}

/// By its name a table is known again, and arrays in a .cst file would be taken for one.
void require_a_fitting_name(const TableOptions& options) {
  const bool table = options.format == TableFormat::kCst;
  const std::filesystem::path output = options.output;
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(output, error);
  const bool no_name_to_give = std::filesystem::is_other(there) || std::filesystem::is_directory(there);
  if (extension_of(output) == (table ? ".cst" : ".npz") || no_name_to_give || output == "-") return;
  throw CLI::ValidationError(
      "--output", "is " + options.output +
                      (table ? "; a table's name ends in .cst (and that of arrays, with --export, in .npz)"
                             : "; with --export a name that ends in .npz is right"));
}

void require_a_guide(const SamplingTableOptions& table) {
  const bool guided = table.method != SamplingMethod::kBinarySearch && table.method != SamplingMethod::kAlias;
  if (guided || (table.guide_size == 0 && table.marginal_guide_size == 0)) return;
  throw CLI::ValidationError(table.guide_size != 0 ? "--guide-size" : "--marginal-guide-size",
                             "is for methods with a guide table: --method balanced-forest, radix-forest or "
                             "cutpoint-binary");
}

/// Refuses what was a method once; other names are for the next check.
CLI::Validator no_retired_method() {
  return {[](const std::string& name) -> std::string {
            for (const sampling::RetiredMethod& retired : sampling::kRetiredMethods) {
              if (name != retired.name) continue;
              return name +
                     " is a method no more, since others are as fast wherever it was of use; "
                     "leave --method out: the default draws the same samples";
            }
            return "";
          },
          ""};
}

void require_an_output(const DrawingOptions& options) {
  if (!options.output.empty() || !options.preview.empty()) return;
  throw CLI::ValidationError("draw-samples",
                             "nowhere to put the samples: give -o FILE.npy, --preview FILE.png or both");
}

/// Else the server would refuse the last batch, after all the others have been drawn.
void require_points_within(const DrawSamplesOptions& samples) {
  constexpr std::int64_t kMostPoints = std::int64_t{1} << 32;
  if (samples.first_index > kMostPoints || samples.count > kMostPoints - samples.first_index) {
    throw CLI::ValidationError("--count",
                               "the sequences have 2^32 points: --first-index and --count add up to more");
  }
  if (samples.total != 0 && samples.sequence != PointSequence::kHammersley) {
    throw CLI::ValidationError("--total",
                               "is of a Hammersley set: give --sequence hammersley, or leave it out");
  }
  if (samples.total != 0 && samples.total < samples.first_index + samples.count) {
    throw CLI::ValidationError("--total", "of a Hammersley set is at least --first-index plus --count");
  }
}

void require_a_map(const DrawingOptions& options) {
  if (options.preview.empty() || !options.map.empty() || !is_table_file(options.input)) return;
  throw CLI::ValidationError("--preview",
                             "a table holds no picture: give the map it was made of with --map IMAGE");
}

/// "acescg", or "0.3,0.6,0.1".
void read_luminance(const std::string& text, MapTableOptions& table) {
  table.luminance_given = true;
  const auto named = kLuminances.find(text);
  if (named != kLuminances.end()) {
    table.luminance = named->second;
    return;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  bool numbers = parts.size() == 3;
  for (std::size_t i = 0; numbers && i < 3; ++i) {
    float& coefficient = table.luminance_coefficients[i];
    numbers = absl::SimpleAtof(parts[i], &coefficient) && coefficient >= 0.0F && std::isfinite(coefficient);
  }
  if (!numbers) {
    throw CLI::ValidationError("--luminance", (text.empty() ? "an empty word" : text) +
                                                  " is none of rec709, rec2020, acescg and average, nor "
                                                  "three finite numbers R,G,B of at least 0");
  }
  if (std::all_of(table.luminance_coefficients.begin(), table.luminance_coefficients.end(),
                  [](float coefficient) { return coefficient == 0.0F; })) {
    throw CLI::ValidationError("--luminance", "is " + text + "; as floats one of them must be more than 0");
  }
  table.luminance = Luminance::kCustom;
}

/// Returns them.
OptionList add_table_options(CLI::App& command, const std::string& condition, MapTableOptions& table) {
  const std::size_t others = command.get_options().size();
  add_picture_choice(command, table.choice);
  command
      .add_option("--projection", table.projection,
                  condition + "lat-long (default), plane or equal-area (octahedral, as pbrt has it)")
      ->transform(one_of(kProjections))
      ->type_name("NAME");
  command
      .add_option("--interpolation", table.interpolation,
                  condition +
                      "constant (default): each texel has one density; bilinear: between centres of "
                      "texels it is interpolated")
      ->transform(one_of(kInterpolations))
      ->type_name("NAME");
  command
      .add_option("--invalid-weights", table.invalid_weights,
                  condition +
                      "clamp (default): NaN and negative channels count as 0, infinity as the largest float; "
                      "refuse: fail and name the first")
      ->transform(one_of(kInvalidWeights))
      ->type_name("NAME");
  command.add_option_function<std::string>(
      "--luminance", [&table](const std::string& text) { read_luminance(text, table); },
      condition +
          "rec709, rec2020, acescg, average, or coefficients R,G,B (default: of the file's "
          "chromaticities; rec709 where it has none)");
  command.add_flag("--mis-compensation", table.mis_compensation,
                   condition + "Take the mean off all weights, for renderers that sample the BSDF besides");
  command.add_flag("--uniform-if-zero", table.uniform_if_all_zero,
                   condition + "Where all weights are zero, draw evenly instead of failing");
  command
      .add_option("--method", table.method,
                  condition +
                      "balanced-forest (default), radix-forest, cutpoint-binary, binary-search or alias (not "
                      "monotone)")
      ->transform(one_of(kMethods))
      ->transform(no_retired_method())
      ->type_name("NAME");
  command
      .add_option("--guide-size", table.guide_size,
                  condition + "Entries of each row's guide table (default: as many as columns)")
      ->check(whole_number_within(1, 1 << 24));
  command
      .add_option("--marginal-guide-size", table.marginal_guide_size,
                  condition + "Entries of the guide table that chooses the row (default: as many as rows)")
      ->check(whole_number_within(1, 1 << 24));
  const std::vector<CLI::Option*> all = command.get_options();
  return {all.begin() + static_cast<std::ptrdiff_t>(others), all.end()};
}

void add_sampling_table(CommandLine& line) {
  const auto building = std::make_shared<TableOptions>();
  const auto built_image = std::make_shared<OptionList>();
  CLI::App& table = line.add(
      "sampling-table", "Build the importance-sampling table of an environment map",
      [building](Job& job) { return run_sampling_table(job, *building); },
      [building, built_image] {
        require_another_format(*building);
        refuse_given(*built_image, building->inputs.front());
        require_a_guide(building->table);
        require_a_fitting_name(*building);
      });
  table
      .add_option("inputs", building->inputs,
                  "Image file, or .npy of weights; with --export also a table (.cst). Several of one size, a "
                  "video's frames, become the layers of one table")
      ->required()
      ->type_name("IN");
  line.add_output(table, "-o,--output", building->output, "Table to write (.cst; with --export .npz)")
      .required();
  table
      .add_option(
          "--export", building->format,
          "Write arrays for others instead, as .npz: npz (plain distributions), pbrt (members of "
          "PiecewiseConstant2D) or mitsuba (what DiscreteDistribution2D is made of); bilinear tables as npz")
      ->transform(one_of(kExports))
      ->type_name("NAME");
  *built_image = add_table_options(table, "", building->table);
}

void add_drawing_options(CLI::App& draw, DrawSamplesOptions& samples) {
  draw.add_option("-n,--count", samples.count, "Number of samples")
      ->required()
      ->check(whole_number_within(1));
  draw.add_option("--sequence", samples.sequence, "sobol (default), hammersley or random")
      ->transform(one_of(kSequences))
      ->type_name("NAME");
  draw.add_option("--seed", samples.seed, "Of random numbers, or of the digital shift (0: none)")
      ->check([](const std::string& text) {
        std::uint64_t seed = 0;
        if (absl::SimpleAtoi(text, &seed)) return std::string();
        return absl::StrCat("is ", text.empty() ? "empty" : text,
                            "; a whole number, 0 to 18446744073709551615, is right");
      });
  draw.add_option("--first-index", samples.first_index, "Where in the sequence to begin")
      ->check(whole_number_within(0));
  draw.add_option("--total", samples.total,
                  "hammersley: points of the whole set (default: --first-index + --count), so that several "
                  "runs can share one")
      ->check(whole_number_within(1, std::int64_t{1} << 32));
  draw.add_option("--layer", samples.layer, "Of a layered table: which one (default: 0)")
      ->check(whole_number_within(0, std::numeric_limits<std::uint32_t>::max()));
}

void add_video_tables(CommandLine& line) {
  const auto video = std::make_shared<VideoOptions>();
  CLI::App& tables = line.add(
      "video-tables", "Build the importance-sampling tables of a video's frames, a file each",
      [video](Job& job) { return run_video_tables(job, *video); },
      [video] { require_a_guide(video->table); });
  tables
      .add_option("frames", video->frames,
                  "Image files, or .npy of weights, in their order; \"frames/*.exr\" in quotes is right, too")
      ->required()
      ->type_name("FRAME");
  tables
      .add_option("-o,--output", video->folder,
                  "Folder for the tables, FRAME.cst each, made where there is none")
      ->required()
      ->type_name("DIR");
  tables
      .add_option("--frames-at-once", video->at_once,
                  "That are read, built and written beside one another (4)")
      ->check(whole_number_within(1, 64))
      ->type_name("N");
  add_table_options(tables, "", video->table);
}

void add_draw_samples(CommandLine& line) {
  const auto drawing = std::make_shared<DrawingOptions>();
  const auto drawn_image = std::make_shared<OptionList>();
  CLI::App& draw = line.add(
      "draw-samples", "Draw samples of an image or of a table, and show them on the map",
      [drawing](Job& job) { return run_draw_samples(job, *drawing); },
      [drawing, drawn_image] {
        refuse_given(*drawn_image, drawing->input);
        require_a_guide(drawing->table);
        require_an_output(*drawing);
        require_a_map(*drawing);
        require_points_within(drawing->samples);
      });
  draw.add_option("input", drawing->input, "Image file, .npy of weights, or table (.cst)")
      ->required()
      ->type_name("IN");
  add_drawing_options(draw, drawing->samples);
  *drawn_image = add_table_options(draw, "Of an image: ", drawing->table);
  line.add_output(draw, "-o,--output", drawing->output,
                  "Samples to write: fields u, v, direction (unless of a plane), pdf", OutputFormat::kNpy)
      .type_name("OUT.npy");
  line.add_output(draw, "--preview", drawing->preview, "Picture of the map with the samples on it",
                  OutputFormat::kImage)
      .type_name("OUT.png");
  draw.add_option("--map", drawing->map, "The picture behind the preview, where IN is a table")
      ->needs("--preview")
      ->type_name("IMAGE");
}

void add_evaluate_density(CommandLine& line) {
  const auto density = std::make_shared<DensityOptions>();
  const auto evaluated_image = std::make_shared<OptionList>();
  CLI::App& evaluate = line.add(
      "evaluate-density", "Evaluate the density of a table at given points",
      [density](Job& job) { return run_evaluate_density(job, *density); },
      [density, evaluated_image] {
        refuse_given(*evaluated_image, density->input);
        require_a_guide(density->table);
      });
  evaluate.add_option("input", density->input, "Image file, .npy of weights, or table (.cst)")
      ->required()
      ->type_name("IN");
  evaluate
      .add_option(
          "points", density->points,
          "Positions u, v, [count, 2], or directions, [count, 3], of any numbers; or a file of draw-samples")
      ->required()
      ->type_name("POINTS.npy");
  line.add_output(evaluate, "-o,--output", density->output, "Densities to write, float32 [count]",
                  OutputFormat::kNpy)
      .required()
      ->type_name("OUT.npy");
  evaluate.add_option("--layer", density->layer, "Of a layered table: which one (default: 0)")
      ->check(whole_number_within(0, std::numeric_limits<std::uint32_t>::max()));
  *evaluated_image = add_table_options(evaluate, "Of an image: ", density->table);
}

}  // namespace

void add_sampling_table_commands(CommandLine& line) {
  line.add_bench_row(
      {"sampling-table", bench_image, [](const Buffer& map) { return build_sampling_table(map); }});
  add_sampling_table(line);
  add_video_tables(line);
  add_draw_samples(line);
  add_evaluate_density(line);
}

}  // namespace cumulus::cli

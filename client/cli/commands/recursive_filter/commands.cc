#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
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
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/picture.h"
#include "cli/files/preview.h"
#include "cumulus/errors.h"
#include "cumulus/recursive_filter.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, ImageBoundary> kBoundaries = {{"zero", ImageBoundary::kZero},
                                                          {"clamp", ImageBoundary::kClamp},
                                                          {"repeat", ImageBoundary::kRepeat},
                                                          {"reflect", ImageBoundary::kReflect},
                                                          {"mirror", ImageBoundary::kMirror}};

const std::map<std::string, FilterMethod> kAlgorithms = {{"auto", FilterMethod::kFastest},
                                                         {"lines", FilterMethod::kLines},
                                                         {"tiled", FilterMethod::kTiled},
                                                         {"on-chip", FilterMethod::kOnChip},
                                                         {"decaying", FilterMethod::kDecaying}};

/// Options that take one value for both axes or X,Y have one or two elements.
struct Options {
  std::string command;
  std::string input;
  std::string output;
  std::string preview;
  std::vector<ImageBoundary> boundaries = {ImageBoundary::kClamp};
  std::vector<double> sigmas;
  std::string method = "deriche";
  std::vector<int> derivatives = {0};
  int degree = 3;
  std::vector<double> feedback;
  std::optional<double> gain;
  std::string algorithm = "auto";
  std::optional<double> max_truncation_error;
  bool decode_on_server = false;
};

template <class T>
const T& of_axis(const std::vector<T>& values, std::size_t axis) {
  return values[std::min(axis, values.size() - 1)];
}

AxisKernel axis_of(const Options& options, std::size_t axis, decltype(AxisKernel::kernel) kernel) {
  return {std::move(kernel), of_axis(options.boundaries, axis)};
}

/// 8-bit samples as floats from 0 to 1; floats of any width as they are.
absl::StatusOr<Array> as_floats(const std::string& path, Array image) {
  const ElementType type = image.type();
  if (type == ElementType::kFloat16 || type == ElementType::kFloat32 || type == ElementType::kFloat64)
    return image;
  const auto samples = image.values<std::uint8_t>();
  if (!samples.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " holds ", std::string(element_name(type)),
                                                   "; uint8, float16, float32 or float64 is right"));
  }
  absl::StatusOr<Array> floats = Array::allocate(ElementType::kFloat32, image.shape());
  if (!floats.ok()) return floats;
  auto* out = reinterpret_cast<float*>(floats->mutable_bytes().data());
  for (const std::uint8_t sample : *samples) *out++ = static_cast<float>(sample) / 255.0F;
  return floats;
}

bool derives(const Options& options) {
  return std::any_of(options.derivatives.begin(), options.derivatives.end(),
                     [](int derivative) { return derivative != 0; });
}

/// A blur of integers stays within their range; nothing else is sure to.
absl::Status require_room(const Options& options, std::optional<ElementType> integers) {
  const bool stays_in_range = integers.has_value() && options.command == "blur" && !derives(options);
  if (stays_in_range || is_npy(options.output) || holds_floats(options.output)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the result does not fit into the 0 to 1 of ",
                                                 options.output,
                                                 "; end its name with .exr, .tif, .hdr or .npy"));
}

/// A preview shows one picture whose values may be of any size.
absl::Status require_previewable(const Options& options, const Array& image) {
  if (options.preview.empty()) return absl::OkStatus();
  const bool floats = image.type() == ElementType::kFloat16 || image.type() == ElementType::kFloat32;
  if (floats && image.shape().size() <= 3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.input, " is no picture of float16 or float32, which a preview is for; leave --preview out"));
}

absl::Status write_result(const std::string& path, const ArrayView& image,
                          std::optional<ElementType> integers) {
  if (is_npy(path)) return write_npy(path, image);
  if (image.shape().size() > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of images does not fit into ", path, "; end its name with .npy"));
  }
  return write_image(path, image, Colours::kMultipliedByAlpha, holds_floats(path) ? std::nullopt : integers);
}

/// The options that the fields of ApplyRecursiveFilter come from.
std::vector<FieldName> fields_of(const Options& options) {
  std::vector<FieldName> fields = {
      {"image", options.input},
      {"method", "--algorithm", "--algorithm lines takes every image and every filter, auto the fastest way"},
      {"max_truncation_error", "--max-truncation-error", "--algorithm tiled leaves nothing out"}};
  for (const std::string axis : {"y", "x"}) {
    fields.insert(fields.end(), {{axis + ".boundary", "--boundary"},
                                 {axis + ".gaussian.sigma", "--sigma"},
                                 {axis + ".gaussian.derivative", "--derivative"},
                                 {axis + ".gaussian.method", "--method"},
                                 {axis + ".bspline_prefilter.degree", "--degree"},
                                 {axis + ".feedback.causal", "--feedback"},
                                 {axis + ".feedback.anticausal", "--feedback"},
                                 {axis + ".feedback.gain", "--gain"}});
  }
  return fields;
}

absl::Status explain(const absl::Status& refusal, const Options& options) {
  if (error_reason(refusal) != "DOES_NOT_FIT_ON_CHIP") return name_fields(refusal, fields_of(options));
  std::map<std::string, std::string> facts = error_metadata(refusal);
  return absl::FailedPreconditionError(
      absl::StrCat("--algorithm: is on-chip; this device holds ", facts["tiles_on_chip"],
                   " tiles of 64 x 64 pixels, and a channel of ", options.input, " has ", facts["tiles"],
                   "; tiled is right, or auto, the fastest way"));
}

/// The name of the one that ran.
absl::StatusOr<std::string> download_algorithm(Job& job, const Session& session, const Result& result) {
  const absl::StatusOr<std::int32_t> method = job.download_number<std::int32_t>(session, result, "method");
  if (!method.ok()) return method.status();
  for (const auto& [name, algorithm] : kAlgorithms) {
    if (static_cast<std::int32_t>(algorithm) == *method) return name;
  }
  return absl::InternalError(
      absl::StrCat("the server ran method ", *method, ", which this program does not know"));
}

struct PictureToFilter {
  Array pixels;
  std::optional<ElementType> integers;  // that the file's samples are
};

absl::StatusOr<PictureToFilter> read_input(Job& job, const Options& options) {
  job.stages().begin("read");
  absl::StatusOr<Array> file = is_npy(options.input) ? read_npy(options.input) : read_image(options.input);
  if (!file.ok()) return file.status();
  const std::optional<ElementType> integers = integer_samples(options.input, *file);
  if (absl::Status status = require_room(options, integers); !status.ok()) return status;
  if (absl::Status status = require_previewable(options, *file); !status.ok()) return status;
  absl::StatusOr<Array> pixels = as_floats(options.input, *std::move(file));
  if (!pixels.ok()) return pixels.status();
  return PictureToFilter{*std::move(pixels), integers};
}

absl::StatusOr<Result> filter_pixels(Job& job, const Session& session, const Array& pixels,
                                     const RecursiveFilterOptions& filter) {
  const absl::StatusOr<Buffer> buffer = job.upload(session, pixels.view());
  if (!buffer.ok()) return buffer.status();
  return job.run(session, "compute", apply_recursive_filter(*buffer, filter));
}

/// Of an image file that the server decodes.
absl::StatusOr<Result> filter_file(Job& job, const Session& session, const Options& options,
                                   const RecursiveFilterOptions& filter) {
  return job.run_on_file(session, "compute", options.input,
                         [&filter](const Source& source) { return apply_recursive_filter(source, filter); });
}

void describe_image(Report& report, const Array& image) {
  const Shape& shape = image.shape();
  const bool batch = shape.size() == 4;
  if (batch) report.add("images", shape[0]);
  const std::size_t rows = batch ? 1 : 0;
  report.add("width", shape[rows + 1]);
  report.add("height", shape[rows]);
  report.add("channels", shape.size() == 2 ? 1 : shape[rows + 2]);
  report.add("element_type", std::string(element_name(image.type())));
}

absl::Status run_filter(Job& job, const Options& options, const RecursiveFilterOptions& filter) {
  const bool on_server = options.decode_on_server && !is_npy(options.input);
  absl::StatusOr<PictureToFilter> picture;
  if (!on_server) {
    picture = read_input(job, options);
    if (!picture.ok()) return picture.status();
  } else if (absl::Status status = require_room(options, std::nullopt); !status.ok()) {
    return status;
  }
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Result> result = on_server ? filter_file(job, *session, options, filter)
                                                  : filter_pixels(job, *session, picture->pixels, filter);
  if (!result.ok()) return explain(result.status(), options);
  const absl::StatusOr<Array> filtered = job.download(*session, *result, "image");
  if (!filtered.ok()) return filtered.status();
  const auto ran = download_algorithm(job, *session, *result);
  if (!ran.ok()) return ran.status();
  const auto truncation_bound = job.download_number<double>(*session, *result, "truncation_bound");
  if (!truncation_bound.ok()) return truncation_bound.status();
  job.stages().begin("write");
  absl::Status written =
      write_result(options.output, filtered->view(), on_server ? std::nullopt : picture->integers);
  job.stages().end();
  if (written.ok()) written = write_preview(job.stages(), options.preview, filtered->view());
  if (!written.ok()) return written;
  job.report().add("command", options.command);
  job.report().add("input", options.input);
  describe_image(job.report(), *filtered);  // which is as the input is
  job.report().add("output", options.output);
  job.report().add("algorithm", *ran);
  job.report().add("truncation_bound", *truncation_bound);
  job.describe_run();
  return absl::OkStatus();
}

template <class KernelOfAxis>
RecursiveFilterOptions on_both_axes(const Options& options, const KernelOfAxis& kernel) {
  return {.y = axis_of(options, 1, kernel(1)),
          .x = axis_of(options, 0, kernel(0)),
          .method = kAlgorithms.at(options.algorithm),
          .max_truncation_error = options.max_truncation_error,
          .tell_method = true};
}

/// What all commands share.
std::shared_ptr<Options> make_options(const std::string& command) {
  auto options = std::make_shared<Options>();
  options->command = command;
  return options;
}

void add_file_options(CommandLine& line, CLI::App& command, Options& options) {
  command.add_option("input", options.input, "Image file, or .npy of uint8, float16, float32 or float64")
      ->required()
      ->type_name("IN");
  line.add_output(command, "-o,--output", options.output, "Image file to write, or .npy",
                  OutputFormat::kImageOrNpy)
      .required();
  line.add_output(command, "--preview", options.preview,
                  "Picture of the result to write, tone-mapped; of floating-point images",
                  OutputFormat::kImage)
      .type_name("OUT.png");
  add_list(command, "--boundary", options.boundaries, 2, one_of(kBoundaries),
           "Beyond the border: zero, clamp (the default but for bspline-prefilter's mirror), repeat, reflect "
           "(half-sample) or mirror (whole-sample); X,Y for one along each axis: repeat,clamp for a lat-long "
           "map")
      .type_name("NAME[,NAME]");
  command
      .add_option(
          "--algorithm", options.algorithm,
          "How a GPU goes about it, for study: lines, tiled, on-chip, decaying; auto takes the fastest "
          "that can do it")
      ->check(CLI::IsMember({"auto", "lines", "tiled", "on-chip", "decaying"}))
      ->capture_default_str();
  command
      .add_option(
          "--max-truncation-error", options.max_truncation_error,
          "What auto, on-chip and decaying may leave out of a pixel because the filter has all but "
          "forgotten it, relative to the image's largest magnitude; 0: nothing; without it, less than "
          "rounding")
      ->check(number_within(0, 1))
      ->type_name("SHARE");
  command.add_flag(
      "--decode-on-server", options.decode_on_server,
      "Send the image file as it is, for the server to decode: fewer bytes than its pixels over a slow "
      "network; of files of floating-point numbers");
}

/// 0, which leaves the axis as it is, or a sigma.
CLI::Validator sigma_of_axis() {
  const CLI::Validator sigma = number_within(0.5, 10000);
  return {[sigma](const std::string& text) { return text == "0" ? std::string() : sigma(text); }, ""};
}

/// Of `blur`.
void require_what_goes_together(const Options& options) {
  if (derives(options) && options.method == "young")
    throw CLI::ValidationError("--derivative", "only --method deriche has derivatives");
  bool blurs = false;
  for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
    const bool stays = of_axis(options.sigmas, axis) == 0;
    blurs = blurs || !stays;
    if (stays && of_axis(options.derivatives, axis) != 0) {
      throw CLI::ValidationError("--derivative",
                                 "an axis whose sigma is 0 has none; X,Y with a 0 for that axis is right");
    }
  }
  if (!blurs) {
    throw CLI::ValidationError("--sigma", "is 0; a number, 0.5 to 10000, is right along one axis at least");
  }
}

void add_blur(CommandLine& line) {
  const auto options = make_options("blur");
  CLI::App& blur = line.add(
      "blur", "Blur an image with a Gaussian of any width, or take its derivatives",
      [options](Job& job) {
        RecursiveFilterOptions filter = on_both_axes(*options, [&](std::size_t axis) {
          return GaussianKernel{
              of_axis(options->sigmas, axis),
              options->method == "young" ? GaussianMethod::kYoung : GaussianMethod::kDeriche,
              of_axis(options->derivatives, axis)};
        });
        if (of_axis(options->sigmas, 0) == 0) filter.x.reset();
        if (of_axis(options->sigmas, 1) == 0) filter.y.reset();
        return run_filter(job, *options, filter);
      },
      [options] { require_what_goes_together(*options); });
  add_file_options(line, blur, *options);
  add_list(
      blur, "--sigma", options->sigmas, 2, sigma_of_axis(),
      "Standard deviation in pixels, 0.5 to 10000; X,Y for one along each axis, 0 for an axis that stays "
      "as it is")
      .required()
      ->type_name("PIXELS[,PIXELS]");
  add_list(blur, "--derivative", options->derivatives, 2, whole_number_within(0, 2),
           "0 blurs; 1 or 2 takes the blurred image's derivative; X,Y for one along each axis: 1,0 is d/dx")
      .type_name("ORDER[,ORDER]");
  blur.add_option("--method", options->method,
                  "deriche: within 0.03 % of a Gaussian's peak; young: less work, within 4 %")
      ->check(CLI::IsMember({"deriche", "young"}))
      ->capture_default_str();
}

void add_bspline_prefilter(CommandLine& line) {
  const auto options = make_options("bspline-prefilter");
  options->boundaries = {ImageBoundary::kMirror};
  CLI::App& prefilter =
      line.add("bspline-prefilter", "Find the coefficients of the B-spline through an image's pixels",
               [options](Job& job) {
                 return run_filter(job, *options, on_both_axes(*options, [&](std::size_t /*axis*/) {
                                     return BsplinePrefilterKernel{options->degree};
                                   }));
               });
  add_file_options(line, prefilter, *options);
  prefilter.add_option("--degree", options->degree, "Of the spline: 3 or 5")->check(CLI::IsMember({3, 5}));
}

void add_feedback_filter(CommandLine& line) {
  const auto options = make_options("filter");
  CLI::App& filter = line.add(
      "filter",
      "Filter forwards and backwards along both axes: y[i] = gain x[i] - a1 y[i-1] - a2 y[i-2] - ...",
      [options](Job& job) {
        return run_filter(job, *options, on_both_axes(*options, [&](std::size_t /*axis*/) {
                            return FeedbackKernel{options->gain, options->feedback, options->feedback};
                          }));
      });
  add_file_options(line, filter, *options);
  const CLI::Validator finite = number_within(std::numeric_limits<double>::lowest());
  add_list(filter, "--feedback", options->feedback, 5, finite,
           "a1,a2,...: at most 5, the poles of 1 + a1/z + a2/z^2 + ... within 0.99999 of the origin")
      .required()
      ->type_name("A1[,A2...]");
  filter
      .add_option("--gain", options->gain,
                  "Of an axis, both ways, not 0; without it a constant image stays as it is")
      ->check(finite);
}

}  // namespace

void add_recursive_filter_commands(CommandLine& line) {
  line.add_bench_row(
      {"blur", bench_image, [](const Buffer& image) {
         const AxisKernel gaussian = {GaussianKernel{8, GaussianMethod::kDeriche, 0}, ImageBoundary::kClamp};
         return apply_recursive_filter(image, {.y = gaussian,
                                               .x = gaussian,
                                               .accumulate = {},
                                               .weight = 1,
                                               .method = FilterMethod::kFastest,
                                               .max_truncation_error = {},
                                               .tell_method = false});
       }});
  add_blur(line);
  add_bspline_prefilter(line);
  add_feedback_filter(line);
}

}  // namespace cumulus::cli

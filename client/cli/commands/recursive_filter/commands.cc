#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/app/command_line.h"
#include "cli/commands/picture_options.h"
#include "cli/commands/recursive_filter/filter_job.h"
#include "cumulus/recursive_filter.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, ImageBoundary> kBoundaries = {{"zero", ImageBoundary::kZero},
                                                          {"clamp", ImageBoundary::kClamp},
                                                          {"repeat", ImageBoundary::kRepeat},
                                                          {"reflect", ImageBoundary::kReflect},
                                                          {"mirror", ImageBoundary::kMirror}};
/// Of filters that average: as box-filter has them.
const std::map<std::string, ImageBoundary> kBlurBoundaries = [] {
  auto boundaries = kBoundaries;
  boundaries.emplace("exact", ImageBoundary::kExact);
  return boundaries;
}();

const std::map<std::string, GaussianMethod> kGaussianMethods = {{"auto", GaussianMethod::kDefault},
                                                                {"deriche", GaussianMethod::kDeriche},
                                                                {"young", GaussianMethod::kYoung},
                                                                {"fir", GaussianMethod::kFir}};

template <class T>
const T& of_axis(const std::vector<T>& values, std::size_t axis) {
  return values[std::min(axis, values.size() - 1)];
}

AxisKernel axis_of(const FilterOptions& options, std::size_t axis, decltype(AxisKernel::kernel) kernel) {
  return {std::move(kernel), of_axis(options.boundaries, axis)};
}

/// What the server does with pixels that are not finite: who reads the file clamps them.
NonFinitePixels left_to_server(const FilterOptions& options) {
  const bool clamps = options.decode_on_server && options.picture.non_finite == NonFinite::kClamp;
  return clamps ? NonFinitePixels::kClamp : policy_of_server(options.picture);
}

template <class KernelOfAxis>
RecursiveFilterOptions on_both_axes(const FilterOptions& options, const KernelOfAxis& kernel) {
  return {.y = axis_of(options, 1, kernel(1)),
          .x = axis_of(options, 0, kernel(0)),
          .method = filter_algorithms().at(options.algorithm),
          .max_truncation_error = options.max_truncation_error,
          .tell_method = true,
          .non_finite = left_to_server(options)};
}

/// Of a picture that the server decodes, only the pixels of its first image come back.
void require_decoding_that_server_does(const FilterOptions& options) {
  if (!options.decode_on_server) return;
  const PictureChoice& choice = options.picture.choice;
  if (!choice.subimage.empty() || !choice.channels.empty()) {
    throw CLI::ValidationError(
        "--decode-on-server",
        "takes the file's first picture as it is; leave it out, or --subimage and --channels");
  }
}

/// What all commands share.
std::shared_ptr<FilterOptions> make_options(const std::string& command) {
  auto options = std::make_shared<FilterOptions>();
  options->command = command;
  return options;
}

void add_file_options(CommandLine& line, CLI::App& command, FilterOptions& options) {
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
  add_picture_choice(command, options.picture.choice);
  add_non_finite_policy(command, options.picture.non_finite);
  add_picture_output(command, options.picture);
  command
      .add_option(
          "--algorithm", options.algorithm,
          "How a GPU goes about it, for study: lines, tiled, on-chip, decaying; auto takes the fastest "
          "that can do it")
      ->check(CLI::IsMember({"auto", "lines", "tiled", "on-chip", "decaying"}))
      ->capture_default_str();
  command
      .add_option("--max-truncation-error", options.max_truncation_error,
                  "What auto, on-chip and decaying may leave out of a pixel beyond the filter's decay "
                  "length, relative "
                  "to the image's largest magnitude; 0: nothing; without it, less than rounding")
      ->check(number_within(0, 1))
      ->type_name("SHARE");
  command.add_flag(
      "--decode-on-server", options.decode_on_server,
      "Send the image file as it is, for the server to decode: fewer bytes than its pixels over a slow "
      "network; of files of floating-point numbers");
}

void add_boundaries(CLI::App& command, FilterOptions& options,
                    const std::map<std::string, ImageBoundary>& boundaries, const std::string& names) {
  add_list(command, "--boundary", options.boundaries, 2, one_of(boundaries),
           "Beyond the border: " + names + "; X,Y for one along each axis: repeat,clamp for a lat-long map")
      .type_name("NAME[,NAME]");
}

/// 0, which leaves the axis as it is, or a sigma.
CLI::Validator sigma_of_axis() {
  const CLI::Validator sigma = number_within(0.5, 10000);
  return {[sigma](const std::string& text) { return text == "0" ? std::string() : sigma(text); }, ""};
}

/// Of `blur`.
void require_what_goes_together(const FilterOptions& options) {
  require_decoding_that_server_does(options);
  if (derives(options) && options.method != "deriche" && options.method != "auto")
    throw CLI::ValidationError("--derivative", "only --method deriche has derivatives");
  if (options.method == "fir" && options.algorithm != "auto")
    throw CLI::ValidationError("--algorithm",
                               "is of recursive filters; --method fir goes one way, leave it out");
  if (options.method == "fir" && options.max_truncation_error.has_value()) {
    throw CLI::ValidationError(
        "--max-truncation-error",
        "is of recursive filters; --method fir leaves out less than 2^-46, leave it out");
  }
  bool blurs = false;
  for (const std::size_t axis : {std::size_t{0}, std::size_t{1}}) {
    const bool stays = of_axis(options.sigmas, axis) == 0;
    blurs = blurs || !stays;
    if (of_axis(options.derivatives, axis) != 0 &&
        of_axis(options.boundaries, axis) == ImageBoundary::kExact) {
      throw CLI::ValidationError(
          "--boundary",
          "is exact, the mean of what lies inside, which a derivative has none of; clamp, mirror, reflect, "
          "repeat or zero is right along an axis with --derivative");
    }
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
          return GaussianKernel{of_axis(options->sigmas, axis), kGaussianMethods.at(options->method),
                                of_axis(options->derivatives, axis)};
        });
        if (of_axis(options->sigmas, 0) == 0) filter.x.reset();
        if (of_axis(options->sigmas, 1) == 0) filter.y.reset();
        return run_filter(job, *options, filter);
      },
      [options] { require_what_goes_together(*options); });
  add_file_options(line, blur, *options);
  add_boundaries(blur, *options, kBlurBoundaries,
                 "zero, clamp (the default), repeat, reflect (half-sample), mirror (whole-sample) or exact "
                 "(the mean of what lies inside)");
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
                  "fir: never negative, each pixel within 2e-6 of itself, also beside a sun; deriche: within "
                  "0.03 % of a Gaussian's peak; young: less work, within 4 %; auto: fir, and deriche for "
                  "derivatives and with --algorithm or --max-truncation-error")
      ->check(CLI::IsMember({"auto", "deriche", "young", "fir"}))
      ->capture_default_str();
}

void add_bspline_prefilter(CommandLine& line) {
  const auto options = make_options("bspline-prefilter");
  options->boundaries = {ImageBoundary::kMirror};
  CLI::App& prefilter = line.add(
      "bspline-prefilter", "Find the coefficients of the B-spline through an image's pixels",
      [options](Job& job) {
        return run_filter(job, *options, on_both_axes(*options, [&](std::size_t /*axis*/) {
                            return BsplinePrefilterKernel{options->degree};
                          }));
      },
      [options] { require_decoding_that_server_does(*options); });
  add_file_options(line, prefilter, *options);
  add_boundaries(prefilter, *options, kBoundaries,
                 "zero, clamp, repeat, reflect (half-sample) or mirror (whole-sample, the default)");
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
      },
      [options] { require_decoding_that_server_does(*options); });
  add_file_options(line, filter, *options);
  add_boundaries(filter, *options, kBoundaries,
                 "zero, clamp (the default), repeat, reflect (half-sample) or mirror (whole-sample)");
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

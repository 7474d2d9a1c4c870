#include "cumulus/recursive_filter.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/image_file.h"
#include "cli/npy_file.h"

namespace cumulus::cli {
namespace {

const std::map<std::string, ImageBoundary> kBoundaries = {{"zero", ImageBoundary::kZero},
                                                          {"clamp", ImageBoundary::kClamp},
                                                          {"repeat", ImageBoundary::kRepeat},
                                                          {"reflect", ImageBoundary::kReflect},
                                                          {"mirror", ImageBoundary::kMirror}};

/// Options that take one value for both axes or X,Y have one or two elements.
struct Options {
  std::string input;
  std::string output;
  std::vector<ImageBoundary> boundaries = {ImageBoundary::kClamp};
  std::vector<double> sigmas;
  int degree = 3;
  std::vector<double> feedback;
  std::optional<double> gain;
};

AxisKernel axis_of(const Options& options, std::size_t axis, decltype(AxisKernel::kernel) kernel) {
  return {std::move(kernel), options.boundaries[std::min(axis, options.boundaries.size() - 1)]};
}

bool is_npy(const std::string& path) { return std::filesystem::path(path).extension() == ".npy"; }

/// Pixels as floats: 8-bit samples become 0 to 1.
absl::StatusOr<Array> as_floats(Array image) {
  if (image.type() == ElementType::kFloat32) return image;
  const auto samples = image.values<std::uint8_t>();
  if (!samples.ok()) return samples.status();
  absl::StatusOr<Array> floats = Array::allocate(ElementType::kFloat32, image.shape());
  if (!floats.ok()) return floats;
  auto* out = reinterpret_cast<float*>(floats->mutable_bytes().data());
  for (const std::uint8_t sample : *samples) *out++ = static_cast<float>(sample) / 255.0F;
  return floats;
}

absl::Status run_filter(Job& job, const std::string& command, const Options& options,
                        const RecursiveFilterOptions& filter) {
  job.stages().begin("read");
  absl::StatusOr<Array> file = read_image(options.input);
  if (!file.ok()) return file.status();
  const absl::StatusOr<Array> image = as_floats(*std::move(file));
  if (!image.ok()) return image.status();
  const absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Session> session = client->create_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<Result> result = job.run(*session, "compute", apply_recursive_filter(*buffer, filter));
  if (!result.ok()) return result.status();
  const absl::StatusOr<Array> filtered = job.download(*session, *result, "image");
  if (!filtered.ok()) return filtered.status();
  job.stages().begin("write");
  const absl::Status written = is_npy(options.output) ? write_npy(options.output, filtered->view())
                                                      : write_image(options.output, filtered->view());
  job.stages().end();
  if (!written.ok()) return written;
  job.report().add("command", command);
  job.report().add("input", options.input);
  job.report().add("width", image->shape()[1]);
  job.report().add("height", image->shape()[0]);
  job.report().add("channels", image->shape()[2]);
  job.report().add("output", options.output);
  job.describe_run(*client);
  return absl::OkStatus();
}

template <class KernelOfAxis>
RecursiveFilterOptions on_both_axes(const Options& options, const KernelOfAxis& kernel) {
  return {.y = axis_of(options, 1, kernel(1)), .x = axis_of(options, 0, kernel(0))};
}

void add_file_options(CLI::App& command, Options& options) {
  command.add_option("input", options.input, "Image file")->required()->type_name("IN");
  command.add_option("-o,--output", options.output, "Image file to write, or .npy")
      ->required()
      ->type_name("OUT");
  command
      .add_option(
          "--boundary", options.boundaries,
          "Beyond the border: zero, clamp, repeat, reflect (half-sample) or mirror (whole-sample); X,Y for "
          "one along each axis (repeat,clamp for a lat-long map)")
      ->delimiter(',')
      ->expected(1, 2)
      ->transform(CLI::CheckedTransformer(kBoundaries));
}

void add_blur(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& blur = line.add("blur", "Blur an image with a Gaussian of any width", [options](Job& job) {
    return run_filter(job, "blur", *options, on_both_axes(*options, [&](std::size_t axis) {
                        return GaussianKernel{options->sigmas[std::min(axis, options->sigmas.size() - 1)]};
                      }));
  });
  add_file_options(blur, *options);
  blur.add_option("--sigma", options->sigmas,
                  "Standard deviation in pixels, 0.5 to 10000; X,Y for one along each axis")
      ->required()
      ->delimiter(',')
      ->expected(1, 2)
      ->check(CLI::Range(0.5, 10000.0));
}

void add_bspline_prefilter(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  options->boundaries = {ImageBoundary::kMirror};
  CLI::App& prefilter =
      line.add("bspline-prefilter", "Find the coefficients of the B-spline through an image's pixels",
               [options](Job& job) {
                 return run_filter(job, "bspline-prefilter", *options,
                                   on_both_axes(*options, [&](std::size_t /*axis*/) {
                                     return BsplinePrefilterKernel{options->degree};
                                   }));
               });
  add_file_options(prefilter, *options);
  prefilter.add_option("--degree", options->degree, "Of the spline: 3 or 5")->check(CLI::IsMember({3, 5}));
}

void add_feedback_filter(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  CLI::App& filter = line.add(
      "filter",
      "Filter forwards and backwards along both axes: y[i] = gain x[i] - a1 y[i-1] - a2 y[i-2] - ...",
      [options](Job& job) {
        return run_filter(job, "filter", *options, on_both_axes(*options, [&](std::size_t /*axis*/) {
                            return FeedbackKernel{options->gain, options->feedback, options->feedback};
                          }));
      });
  add_file_options(filter, *options);
  filter.add_option("--feedback", options->feedback, "a1,a2,...: at most 5")
      ->required()
      ->delimiter(',')
      ->expected(1, 5);
  filter.add_option("--gain", options->gain,
                    "Of an axis, both ways; without it a constant image stays as it is");
}

}  // namespace

void add_recursive_filter_commands(CommandLine& line) {
  add_blur(line);
  add_bspline_prefilter(line);
  add_feedback_filter(line);
}

}  // namespace cumulus::cli

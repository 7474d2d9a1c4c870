#include "cumulus/summed_area_table.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/image_file.h"
#include "cli/npy_file.h"
#include "cli/picture_file.h"

namespace cumulus::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  BoxFilterOptions box;
};

bool is_npy(const std::string& path) { return std::filesystem::path(path).extension() == ".npy"; }

/// Without a file format for it, a 64-bit sum would be lost in silence.
std::string stored_type(const std::string& path, ElementType type) {
  const bool narrowed = type == ElementType::kFloat64 && std::filesystem::path(path).extension() == ".exr";
  return std::string(element_name(narrowed ? ElementType::kFloat32 : type));
}

void require_float_file(const Options& options) {
  if (is_npy(options.output) || holds_floats(options.output)) return;
  throw CLI::ValidationError("--output",
                             "sums need a file of large numbers: end its name with .exr, .tif or .npy");
}

absl::Status write_array(Job& job, const std::string& path, const ArrayView& array) {
  job.stages().begin("write");
  absl::Status status = is_npy(path) ? write_npy(path, array) : write_image(path, array);
  job.stages().end();
  return status;
}

/// The means of 8-bit samples as 8-bit samples again for a picture file, which would take 1.0 as white;
/// otherwise as they are.
absl::StatusOr<Array> for_file(Array means, ElementType input, const std::string& path) {
  if (input != ElementType::kUint8 || is_npy(path)) return means;
  const absl::StatusOr<std::span<const float>> values = means.values<float>();
  if (!values.ok()) return values.status();
  absl::StatusOr<Array> scaled = Array::allocate(ElementType::kFloat32, means.shape());
  if (!scaled.ok()) return scaled;
  auto* out = reinterpret_cast<float*>(scaled->mutable_bytes().data());
  for (const float value : *values) *out++ = value / 255.0F;
  return scaled;
}

struct Computed {
  Client client;
  Array image;
  Array output;
};

/// Reads the image, uploads it, runs `operation` of it, and downloads the array `name`.
template <class MakeOperation>
absl::StatusOr<Computed> compute(Job& job, const Options& options, const MakeOperation& operation,
                                 const std::string& name) {
  job.stages().begin("read");
  absl::StatusOr<Array> image = read_picture(options.input);
  if (!image.ok()) return image.status();
  absl::StatusOr<Client> client = job.connect();
  if (!client.ok()) return client.status();
  const absl::StatusOr<Session> session = client->create_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, image->view());
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<Result> result = job.run(*session, "compute", operation(*buffer));
  if (!result.ok()) return result.status();
  absl::StatusOr<Array> output = job.download(*session, *result, name);
  if (!output.ok()) return output.status();
  return Computed{*std::move(client), *std::move(image), *std::move(output)};
}

void describe_input(Job& job, const Options& options, const Array& image) {
  job.report().add("input", options.input);
  job.report().add("width", image.shape()[1]);
  job.report().add("height", image.shape()[0]);
  job.report().add("channels", image.shape()[2]);
}

absl::Status run_summed_area_table(Job& job, const Options& options) {
  const auto computed = compute(
      job, options, [](const Buffer& image) { return build_summed_area_table(image); }, "sums");
  if (!computed.ok()) return computed.status();
  if (absl::Status written = write_array(job, options.output, computed->output.view()); !written.ok())
    return written;
  job.report().add("command", "summed-area-table");
  describe_input(job, options, computed->image);
  job.report().add("output", options.output);
  job.report().add("element_type", std::string(element_name(computed->output.type())));
  job.report().add("stored_as", stored_type(options.output, computed->output.type()));
  job.describe_run(computed->client);
  return absl::OkStatus();
}

absl::Status run_box_filter(Job& job, const Options& options) {
  auto computed = compute(
      job, options, [&](const Buffer& image) { return filter_box(image, options.box); }, "image");
  if (!computed.ok()) return computed.status();
  const absl::StatusOr<Array> picture =
      for_file(std::move(computed->output), computed->image.type(), options.output);
  if (!picture.ok()) return picture.status();
  if (computed->image.type() != ElementType::kUint8 && !is_npy(options.output) &&
      !holds_floats(options.output)) {
    return absl::InvalidArgumentError(absl::StrCat("the means of floating-point pixels do not fit into ",
                                                   options.output,
                                                   "; end its name with .exr, .tif, .hdr or .npy"));
  }
  if (absl::Status written = write_array(job, options.output, picture->view()); !written.ok()) return written;
  job.report().add("command", "box-filter");
  describe_input(job, options, computed->image);
  job.report().add("radius", options.box.radius);
  job.report().add("output", options.output);
  job.describe_run(computed->client);
  return absl::OkStatus();
}

}  // namespace

void add_summed_area_table_commands(CommandLine& line) {
  const auto sums = std::make_shared<Options>();
  CLI::App& table = line.add(
      "summed-area-table",
      "Sum an image's pixels from the top left corner to each pixel. Sums of float pixels are float64: .npy "
      "and .tif "
      "keep them, .exr stores them as float32",
      [sums](Job& job) { return run_summed_area_table(job, *sums); }, [sums] { require_float_file(*sums); });
  table.add_option("input", sums->input, "Image file")->required()->type_name("IN");
  table.add_option("-o,--output", sums->output, "File to write: .npy, .tif or .exr")
      ->required()
      ->type_name("OUT");

  const auto box = std::make_shared<Options>();
  CLI::App& filter = line.add("box-filter", "Replace each pixel by the mean of the square around it",
                              [box](Job& job) { return run_box_filter(job, *box); });
  filter.add_option("input", box->input, "Image file")->required()->type_name("IN");
  filter.add_option("-o,--output", box->output, "Image file to write, or .npy")->required()->type_name("OUT");
  filter.add_option("--radius", box->box.radius, "The square has 2 * radius + 1 pixels a side")
      ->required()
      ->check(CLI::NonNegativeNumber);
}

}  // namespace cumulus::cli

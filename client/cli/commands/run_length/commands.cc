#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cli/app/command_line.h"
#include "cli/app/refusal.h"
#include "cli/commands/picture_options.h"
#include "cli/commands/run_length/coco.h"
#include "cli/commands/run_length/coco_file.h"
#include "cli/commands/run_length/container_file.h"
#include "cli/files/image.h"
#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "cumulus/run_length.h"

namespace cumulus::cli {
namespace {

/// Of an array in a container.
constexpr std::size_t kMaxAxes = 8;

struct Options {
  std::string input;
  std::string output;
  bool raw_file = false;  // bytes rather than an image or an array
  bool columns = false;
  PictureChoice choice;
};

/// The numbers of a .npy file.
absl::StatusOr<Array> read_numbers(const Options& options) {
  absl::StatusOr<Array> array = read_npy(options.input);
  if (!array.ok()) return array;
  const std::size_t axes = array->shape().size();
  if (axes >= (options.columns ? 2 : 1) && axes <= kMaxAxes) return array;
  return absl::InvalidArgumentError(
      absl::StrCat(options.input, " holds an array of ", axes, " axes; ",
                   options.columns ? "--columns takes 2" : "run-length encode takes 1", " to ", kMaxAxes));
}

/// The input as an array: an image's pixels, a .npy file's numbers, or a file's bytes. What the container
/// will not keep of an image file goes into `lost`.
absl::StatusOr<Array> read_input(const Options& options, std::vector<std::string>& lost) {
  if (options.raw_file) return read_file(options.input);
  if (holds_npy(options.input)) return read_numbers(options);
  absl::StatusOr<ImagePicture> picture = read_image_picture(
      options.input, {.as = ReadAs::kAsStored, .choice = options.choice, .all_channels = true});
  if (!picture.ok()) return picture.status();
  lost = not_kept("", *picture);
  return std::move(picture->pixels);
}

/// Runs are of pixels where the array is an image, [height, width, channels], and a symbol can hold one: 4
/// channels and 16 bytes at most. Otherwise of samples.
EncodeRunLengthsOptions encode_options(const Options& options, const Array& array) {
  constexpr std::int64_t kMaxChannels = 4;
  constexpr std::int64_t kMaxPixelBytes = 16;
  EncodeRunLengthsOptions encoding;
  const std::int64_t channels = array.shape().back();
  const std::int64_t pixel_bytes = channels * static_cast<std::int64_t>(element_bytes(array.type()));
  encoding.pixels =
      array.shape().size() == 3 && channels >= 1 && channels <= kMaxChannels && pixel_bytes <= kMaxPixelBytes;
  encoding.order = options.columns ? RunOrder::kColumns : RunOrder::kRows;
  encoding.split_long_runs = true;
  return encoding;
}

void describe_container(Job& job, const RunLengthContainer& container, std::size_t container_bytes) {
  const std::size_t array_bytes = static_cast<std::size_t>(container.elements()) * container.element_bytes();
  job.report().add("element_type", std::string(element_name(container.type())));
  job.report().add("shape", container.shape());
  job.report().add("stored_as", container.raw() ? "the array itself" : "runs");
  job.report().add("order", container.order() == RunOrder::kColumns ? "columns" : "rows");
  job.report().add("runs", container.runs());
  job.report().add("array_bytes", array_bytes);
  job.report().add("container_bytes", container_bytes);
  job.report().add("ratio", static_cast<double>(array_bytes) / static_cast<double>(container_bytes));
}

absl::Status run_encode(Job& job, const Options& options) {
  job.begin_read();
  std::vector<std::string> lost;
  const absl::StatusOr<Array> array = read_input(options, lost);
  if (!array.ok()) return array.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> buffer = job.upload(*session, array->view());
  if (!buffer.ok()) return buffer.status();
  const EncodeRunLengthsOptions encoding = encode_options(options, *array);
  const absl::StatusOr<Result> result = job.run(*session, "encode", encode_run_lengths(*buffer, encoding));
  if (!result.ok()) return name_fields(result.status(), {{"array", options.input}});
  const absl::StatusOr<Array> symbols = job.download(*session, *result, "symbols");
  if (!symbols.ok()) return symbols.status();
  const absl::StatusOr<Array> counts = job.download(*session, *result, "lengths");
  if (!counts.ok()) return counts.status();

  job.stages().begin("write");
  const absl::StatusOr<std::vector<std::byte>> bytes =
      pack_run_lengths(array->view(), symbols->view(), counts->view(), encoding.pixels, encoding.order);
  if (!bytes.ok()) return bytes.status();
  const absl::Status written = write_file(options.output, *bytes);
  if (!written.ok()) return written;
  const absl::StatusOr<RunLengthContainer> container = RunLengthContainer::parse(*bytes);
  if (!container.ok()) return container.status();
  job.stages().end();
  job.report().add("command", "run-length encode");
  job.report().add("input", options.input);
  job.report().add("output", options.output);
  describe_container(job, *container, bytes->size());
  if (!lost.empty()) {
    job.report().add("warnings", std::vector<std::string>{absl::StrCat(
                                     options.output, " does not keep: ", absl::StrJoin(lost, ", "))});
  }
  job.describe_run();
  return absl::OkStatus();
}

/// Decodes on the server what is stored as runs.
absl::StatusOr<Array> decode_runs(Job& job, const RunLengthContainer& container) {
  const absl::StatusOr<Array> symbols = container.symbols();
  if (!symbols.ok()) return symbols.status();
  const absl::StatusOr<Array> counts = container.counts();
  if (!counts.ok()) return counts.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Buffer> symbol_buffer = job.upload(*session, symbols->view());
  if (!symbol_buffer.ok()) return symbol_buffer.status();
  const absl::StatusOr<Buffer> count_buffer = job.upload(*session, counts->view());
  if (!count_buffer.ok()) return count_buffer.status();
  DecodeRunLengthsOptions options;
  options.pixels = container.pixels();
  options.order = container.order();
  options.shape = container.shape();
  options.max_output_bytes =
      std::max<std::int64_t>(1, container.elements() * static_cast<std::int64_t>(container.element_bytes()));
  const absl::StatusOr<Result> result =
      job.run(*session, "decode", decode_run_lengths(*symbol_buffer, *count_buffer, options));
  if (!result.ok()) return result.status();
  return job.download(*session, *result, "array");
}

/// An image, rather than a .npy file or bytes.
bool writes_image(const Options& options) { return !options.raw_file && !is_npy(options.output); }

/// Whether the output can be what the container holds, which is asked before anything is decoded.
absl::Status check_decodable(const Options& options, const RunLengthContainer& container) {
  if (!writes_image(options)) return absl::OkStatus();
  const Shape& shape = container.shape();
  if (shape.size() != 2 && shape.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(options.input, " holds no image but an array of shape [",
                                                   absl::StrJoin(shape, ", "),
                                                   "]; decode it with --raw, or into a .npy file"));
  }
  return check_keeps_samples(options.output, container.type());
}

absl::Status write_decoded(const Options& options, const ArrayView& array) {
  if (options.raw_file) return write_file(options.output, array.bytes());
  if (is_npy(options.output)) return write_npy(options.output, array);
  return write_image(options.output, array, {.colours = Colours::kAsStored});
}

absl::Status run_decode(Job& job, const Options& options) {
  if (writes_image(options)) {
    if (absl::Status known = check_image_name(options.output); !known.ok()) return known;
  }
  job.stages().begin("read");
  const absl::StatusOr<RunLengthFile> file = read_run_length_file(options.input);
  if (!file.ok()) return file.status();
  const RunLengthContainer& container = file->container;
  if (absl::Status decodable = check_decodable(options, container); !decodable.ok()) return decodable;
  const absl::StatusOr<Array> array = container.raw() ? container.decode() : decode_runs(job, container);
  if (!array.ok()) return array.status();
  job.stages().begin("write");
  const absl::Status written = write_decoded(options, array->view());
  if (!written.ok()) return written;
  job.stages().end();
  job.report().add("command", "run-length decode");
  job.report().add("input", options.input);
  job.report().add("output", options.output);
  describe_container(job, container, file->bytes.bytes().size());
  if (!container.raw()) job.describe_run();
  return absl::OkStatus();
}

absl::Status run_info(Job& job, const Options& options) {
  if (begins_as_json(options.input)) return describe_coco_file(job, options.input);
  const absl::StatusOr<RunLengthFile> file = read_run_length_file(options.input);
  if (!file.ok()) return file.status();
  job.report().add("command", "run-length info");
  job.report().add("input", options.input);
  describe_container(job, file->container, file->bytes.bytes().size());
  return absl::OkStatus();
}

}  // namespace

void add_run_length_commands(CommandLine& line) {
  line.add_bench_row(
      {"run-length", bench_image, [](const Buffer& image) { return encode_run_lengths(image); }});
  CLI::App& group = line.add_group("run-length", "Keep images and files as runs of equal pixels");

  const auto encoded = std::make_shared<Options>();
  CLI::App& encode = line.add(group, "encode", "Encode an image, a .npy file's numbers, or any file's bytes",
                              [encoded](Job& job) { return run_encode(job, *encoded); });
  encode.add_option("input", encoded->input, "Image file, or .npy")->required()->type_name("IN");
  line.add_output(encode, "-o,--output", encoded->output, "Container to write (.rle)",
                  OutputFormat::kRunLengths)
      .required();
  add_picture_choice(encode, encoded->choice);
  encode.add_flag("--columns", encoded->columns, "Take the image column by column");
  encode.add_flag("--raw", encoded->raw_file, "Take the file's bytes as they are, not as an image")
      ->excludes("--columns");

  const auto decoded = std::make_shared<Options>();
  CLI::App& decode = line.add(group, "decode", "Decode a container into an image, a .npy file, or bytes",
                              [decoded](Job& job) { return run_decode(job, *decoded); });
  decode.add_option("input", decoded->input, "Container (.rle)")->required()->type_name("IN");
  line.add_output(decode, "-o,--output", decoded->output, "Image file to write, or .npy").required();
  decode.add_flag("--raw", decoded->raw_file, "Write the array's bytes as they are, not as an image");

  const auto asked = std::make_shared<Options>();
  CLI::App& info = line.add(group, "info", "Check a container, or COCO masks, and say what is in it",
                            [asked](Job& job) { return run_info(job, *asked); });
  info.add_option("input", asked->input, "Container (.rle), or COCO masks (.json)")
      ->required()
      ->type_name("IN");

  add_coco_commands(line, group);
}

}  // namespace cumulus::cli

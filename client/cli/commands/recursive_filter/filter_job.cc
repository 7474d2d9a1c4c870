#include "cli/commands/recursive_filter/filter_job.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/app/refusal.h"
#include "cli/files/channels.h"
#include "cli/files/finite.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/files/preview.h"
#include "cumulus/errors.h"

namespace cumulus::cli {
namespace {

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

/// A blur of integers stays within their range; nothing else is sure to.
bool stays_in_range(const FilterOptions& options) { return options.command == "blur" && !derives(options); }

/// Numbers of objects and the like are no quantities.
absl::Status refuse_numbers(const PictureInput& input) {
  if (!input.image.has_value()) return absl::OkStatus();
  std::vector<std::string> numbers;
  std::vector<std::string> others;
  for (std::size_t channel = 0; channel < input.image->channel_samples.size(); ++channel) {
    const bool number = input.image->channel_samples[channel] == images::Samples::kUint32;
    (number ? numbers : others).push_back(input.image->channel_names[channel]);
  }
  if (numbers.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(input.path, ": its channel ", numbers.front(),
                   " holds whole numbers of 32 bits, which are not to be mixed; ",
                   others.empty() ? "floats, or integers of 8 or 16 bits, are right"
                                  : "leave it out: --channels " + absl::StrJoin(others, ",")));
}

/// A preview shows one picture whose values may be of any size.
absl::Status require_previewable(const FilterOptions& options, const Array& image) {
  if (options.preview.empty()) return absl::OkStatus();
  const bool floats = image.type() == ElementType::kFloat16 || image.type() == ElementType::kFloat32;
  if (floats && image.shape().size() <= 3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.input, " is no picture of float16 or float32, which a preview is for; leave --preview out"));
}

/// The options that the fields of ApplyRecursiveFilter come from.
std::vector<FieldName> fields_of(const FilterOptions& options) {
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

absl::Status explain(const absl::Status& refusal, const FilterOptions& options) {
  std::map<std::string, std::string> facts = error_metadata(refusal);
  if (error_reason(refusal) == "NON_FINITE_PIXEL" && options.decode_on_server) {
    return absl::FailedPreconditionError(absl::StrCat(options.input, ": row ", facts["row"], ", column ",
                                                      facts["column"], ", channel ", facts["channel"], " is ",
                                                      facts["value"], "; ", kNonFiniteCure));
  }
  if (error_reason(refusal) != "DOES_NOT_FIT_ON_CHIP") return name_fields(refusal, fields_of(options));
  return absl::FailedPreconditionError(
      absl::StrCat("--algorithm: is on-chip; this device holds ", facts["tiles_on_chip"],
                   " tiles of 64 x 64 pixels, and a channel of ", options.input, " has ", facts["tiles"],
                   "; tiled is right, or auto, the fastest way"));
}

/// The name of the one that ran.
absl::StatusOr<std::string> download_algorithm(Job& job, const Session& session, const Result& result) {
  const absl::StatusOr<std::int32_t> method = job.download_number<std::int32_t>(session, result, "method");
  if (!method.ok()) return method.status();
  for (const auto& [name, algorithm] : filter_algorithms()) {
    if (static_cast<std::int32_t>(algorithm) == *method) return name;
  }
  return absl::InternalError(
      absl::StrCat("the server ran method ", *method, ", which this program does not know"));
}

/// What ran, and what it may have left out.
struct Filtered {
  FileArray image;
  std::string algorithm;
  double truncation_bound = 0;
};

absl::StatusOr<Filtered> download_filtered(Job& job, const Session& session, const Result& result,
                                           const std::string& output) {
  absl::StatusOr<FileArray> filtered = job.download_for(output, session, result, "image");
  if (!filtered.ok()) return filtered.status();
  absl::StatusOr<std::string> ran = download_algorithm(job, session, result);
  if (!ran.ok()) return ran.status();
  const auto truncation_bound = job.download_number<double>(session, result, "truncation_bound");
  if (!truncation_bound.ok()) return truncation_bound.status();
  return Filtered{*std::move(filtered), *std::move(ran), *truncation_bound};
}

absl::StatusOr<Filtered> filter_array(Job& job, const Session& session, const ArrayView& image,
                                      const FilterOptions& options, const RecursiveFilterOptions& filter,
                                      const std::string& output) {
  const absl::StatusOr<Buffer> buffer = job.upload(session, image);
  if (!buffer.ok()) return buffer.status();
  const absl::StatusOr<Result> result = job.run(session, "compute", apply_recursive_filter(*buffer, filter));
  if (!result.ok()) return explain(result.status(), options);
  return download_filtered(job, session, *result, output);
}

/// Also of an image with more channels than one call takes. A result that comes whole goes into `output`
/// meanwhile, where that is a .npy file.
absl::StatusOr<Filtered> filter_all(Job& job, const Session& session, const ArrayView& image,
                                    const FilterOptions& options, const RecursiveFilterOptions& filter,
                                    const std::string& output) {
  constexpr std::int64_t kAtOnce = 4;
  if (image.shape().size() != 3 || image.shape()[2] <= kAtOnce)
    return filter_array(job, session, image, options, filter, output);
  Filtered all;
  absl::StatusOr<Array> whole = Array::allocate(image.type(), image.shape());
  if (!whole.ok()) return whole.status();
  all.image.array = *std::move(whole);
  for (std::int64_t first = 0; first < image.shape()[2]; first += kAtOnce) {
    std::vector<int> channels;
    for (std::int64_t channel = first; channel < std::min(first + kAtOnce, image.shape()[2]); ++channel)
      channels.push_back(static_cast<int>(channel));
    const absl::StatusOr<Array> part = take_channels(image, channels);
    if (!part.ok()) return part.status();
    absl::StatusOr<Filtered> filtered = filter_array(job, session, part->view(), options, filter, "");
    if (!filtered.ok()) return filtered;
    put_channels(filtered->image.array.view(), static_cast<std::size_t>(first), all.image.array);
    all.algorithm = filtered->algorithm;
    all.truncation_bound = std::max(all.truncation_bound, filtered->truncation_bound);
  }
  return all;
}

/// Of an image file that the server decodes, so that only its pixels come back.
absl::StatusOr<Filtered> filter_file(Job& job, const Session& session, const FilterOptions& options,
                                     const RecursiveFilterOptions& filter) {
  const absl::StatusOr<Result> result =
      job.run_on_file(session, "compute", options.input,
                      [&filter](const Source& source) { return apply_recursive_filter(source, filter); });
  if (!result.ok()) return explain(result.status(), options);
  return download_filtered(job, session, *result, options.output);
}

void describe(Report& report, const FilterOptions& options, const PictureInput& input,
              const Filtered& filtered, const std::string& output) {
  const Shape& shape = filtered.image.array.shape();
  report.add("command", options.command);
  report.add("input", options.input);
  const bool batch = shape.size() == 4;
  if (batch) report.add("images", shape[0]);
  const std::size_t rows = batch ? 1 : 0;
  report.add("width", shape[rows + 1]);
  report.add("height", shape[rows]);
  report.add("channels", shape.size() == 2 ? 1 : shape[rows + 2]);
  report.add("element_type", std::string(element_name(filtered.image.array.type())));
  report.add("output", output);
  report.add("algorithm", filtered.algorithm);
  report.add("truncation_bound", filtered.truncation_bound);
  const bool colours = options.command == "blur" && !derives(options);
  describe_picture(input, options.picture, {output}, report,
                   colours ? coding_warnings(input, output) : std::vector<std::string>());
  if (!options.decode_on_server) return;
  report.add(
      "warnings",
      std::vector<std::string>{absl::StrCat(
          output, " keeps nothing of what ", options.input,
          " says beside its pixels, since the server decoded it; leave --decode-on-server out for that")});
}

/// Writes `filtered` and says what was done.
absl::Status finish(Job& job, const FilterOptions& options, const PictureInput& input,
                    const Filtered& filtered, const std::string& output) {
  job.stages().begin("write");
  absl::Status written =
      write_picture(output, filtered.image, input, options.picture, stays_in_range(options));
  job.stages().end();
  if (written.ok()) written = write_preview(job.stages(), options.preview, filtered.image.array.view());
  if (!written.ok()) return written;
  describe(job.report(), options, input, filtered, output);
  job.describe_run();
  return absl::OkStatus();
}

absl::Status run_on_server_file(Job& job, const FilterOptions& options,
                                const RecursiveFilterOptions& filter) {
  PictureInput input;  // whose pixels and metadata only the server sees
  input.path = options.input;
  const absl::Status fits = check_room(options.output, input, options.picture, stays_in_range(options));
  if (!fits.ok()) return fits;
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Filtered> filtered = filter_file(job, *session, options, filter);
  if (!filtered.ok()) return filtered.status();
  return finish(job, options, input, *filtered, options.output);
}

}  // namespace

const std::map<std::string, FilterMethod>& filter_algorithms() {
  static const std::map<std::string, FilterMethod> kAlgorithms = {
      {"auto", FilterMethod::kFastest},      {"lines", FilterMethod::kLines},
      {"tiled", FilterMethod::kTiled},       {"on-chip", FilterMethod::kOnChip},
      {"decaying", FilterMethod::kDecaying}, {"fir", FilterMethod::kFir}};
  return kAlgorithms;
}

bool derives(const FilterOptions& options) {
  return std::any_of(options.derivatives.begin(), options.derivatives.end(),
                     [](int derivative) { return derivative != 0; });
}

absl::Status run_filter(Job& job, const FilterOptions& options, const RecursiveFilterOptions& filter) {
  if (options.decode_on_server && !is_npy(options.input)) return run_on_server_file(job, options, filter);
  job.begin_read();
  absl::StatusOr<PictureInput> input =
      read_picture(options.input, ReadAs::kFloats, searched_by_server(options.picture, job.dry_run()), true);
  if (!input.ok()) return input.status();
  const std::string output = named_like(options.output, input->image.has_value() ? &*input->image : nullptr);
  absl::Status fits = check_room(output, *input, options.picture, stays_in_range(options));
  if (fits.ok()) fits = refuse_numbers(*input);
  if (fits.ok()) fits = require_previewable(options, input->pixels);
  if (!fits.ok()) return fits;
  absl::StatusOr<Array> image = as_floats(options.input, std::move(input->pixels));
  if (!image.ok()) return image.status();
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  const absl::StatusOr<Filtered> filtered = filter_all(job, *session, image->view(), options, filter, output);
  if (!filtered.ok()) return count_non_finite(filtered.status(), *input, *image);
  return finish(job, options, *input, *filtered, output);
}

}  // namespace cumulus::cli

#include "cli/commands/run_length/coco_encode.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/commands/run_length/coco_dataset.h"
#include "cli/commands/run_length/coco_file.h"
#include "cli/files/elements.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "cli/job/read_ahead.h"
#include "cumulus/coco_masks.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// Masks of one size go to the server together, up to about so many pixels: fewer than those that are read
/// ahead, so that reading goes on meanwhile.
constexpr std::int64_t kPixelsTogether = std::int64_t{1} << 22;
/// Masks that are read while others are encoded.
constexpr std::size_t kMasksAhead = 64;

struct EncodeOptions {
  std::vector<std::string> inputs;
  std::string output;
  bool alpha = false;
  double above = 0;
};

/// A mask of zeros and ones, row by row.
struct Pixels {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> ones;
};

/// What no sample of the type T is more than, where its value is not more than `threshold`.
template <class T>
T whole_threshold(double threshold) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(threshold);
  return static_cast<T>(std::floor(std::min(threshold, static_cast<double>(std::numeric_limits<T>::max()))));
}

/// Marks where every `stride`-th sample is above `most`.
template <class T>
void mark_above(const T* samples, std::size_t stride, T most, std::vector<std::uint8_t>& ones) {
  const auto mark = [&](std::size_t step) {
    for (std::size_t i = 0; i < ones.size(); ++i)
      ones[i] = static_cast<std::uint8_t>(ones[i] | static_cast<std::uint8_t>(samples[i * step] > most));
  };
  if (stride == 1) {
    mark(1);  // which compilers make vector instructions of
  } else {
    mark(stride);
  }
}

/// One where any of the samples of `channels`, [first, end), is above the threshold.
template <class T>
Pixels pixels_above(const Array& image, std::pair<std::size_t, std::size_t> channels, double threshold) {
  const Shape& shape = image.shape();
  const auto* samples = reinterpret_cast<const T*>(image.bytes().data());
  const T most = whole_threshold<T>(threshold);
  Pixels pixels{shape[0], shape[1], std::vector<std::uint8_t>(static_cast<std::size_t>(shape[0] * shape[1]))};
  for (std::size_t channel = channels.first; channel < channels.second; ++channel)
    mark_above(samples + channel, static_cast<std::size_t>(shape[2]), most, pixels.ones);
  return pixels;
}

/// Likewise of a NumPy array, whose numbers count as they are.
absl::StatusOr<Pixels> read_array_pixels(const std::string& path, const EncodeOptions& options) {
  const absl::StatusOr<Array> array = read_npy(path);
  if (!array.ok()) return array.status();
  const Shape& shape = array->shape();
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has shape [", absl::StrJoin(shape, ", "),
                                                   "]; a mask is [height, width], both at least 1"));
  }
  if (options.alpha)
    return absl::InvalidArgumentError(absl::StrCat("--alpha: ", path, " has no alpha channel; leave it out"));
  Pixels pixels{shape[0], shape[1], std::vector<std::uint8_t>(static_cast<std::size_t>(shape[0] * shape[1]))};
  with_elements(*array, [&](const auto* elements) {
    for (std::size_t i = 0; i < pixels.ones.size(); ++i)
      pixels.ones[i] = static_cast<std::uint8_t>(static_cast<double>(elements[i]) > options.above);
  });
  return pixels;
}

absl::StatusOr<Pixels> read_pixels(const std::string& path, const EncodeOptions& options) {
  if (holds_npy(path)) return read_array_pixels(path, options);
  const absl::StatusOr<Array> image = read_image(path);
  if (!image.ok()) return image.status();
  const auto all = static_cast<std::size_t>(image->shape()[2]);
  const bool has_alpha = all == 2 || all == 4;
  if (options.alpha && !has_alpha) {
    return absl::InvalidArgumentError(absl::StrCat("--alpha: ", path, " has no alpha channel; leave it out"));
  }
  if (options.above >= 1 && integer_samples(path) == ElementType::kUint16) {
    return absl::InvalidArgumentError(absl::StrCat("--above: is ", options.above, "; the samples of ", path,
                                                   " have 16 bits and count as 0 to 1: below 1 is right"));
  }
  const std::size_t colours = has_alpha ? all - 1 : all;
  const std::pair<std::size_t, std::size_t> channels(options.alpha ? colours : 0,
                                                     options.alpha ? all : colours);
  return image->type() == ElementType::kUint8 ? pixels_above<std::uint8_t>(*image, channels, options.above)
                                              : pixels_above<float>(*image, channels, options.above);
}

/// Masks of one size, one behind the other.
class Batch {
 public:
  bool has_room_for(const Pixels& mask) const {
    return masks_ == 0 || (mask.height == height_ && mask.width == width_ &&
                           static_cast<std::int64_t>(ones_.size() + mask.ones.size()) <= kPixelsTogether);
  }
  void add(const Pixels& mask) {
    height_ = mask.height;
    width_ = mask.width;
    ++masks_;
    ones_.insert(ones_.end(), mask.ones.begin(), mask.ones.end());
  }
  ArrayView view() const { return {ones_, {masks_, height_, width_}}; }

 private:
  std::int64_t masks_ = 0;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
  std::vector<std::uint8_t> ones_;
};

/// The texts of a batch's masks, behind `texts`.
absl::Status encode(Job& job, const Session& session, const Batch& batch, std::vector<std::string>& texts) {
  const absl::StatusOr<Buffer> uploaded = job.upload(session, batch.view());
  if (!uploaded.ok()) return uploaded.status();
  const absl::StatusOr<Result> runs = job.run(session, "encode", encode_coco_masks(*uploaded));
  if (!runs.ok()) return runs.status();
  Array arrays[3];
  const char* const names[] = {"symbols", "lengths", "first_runs"};
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Array> downloaded = job.download(session, *runs, names[i]);
    if (!downloaded.ok()) return downloaded.status();
    arrays[i] = *std::move(downloaded);
  }
  const auto own = coco_strings(arrays[0].view(), arrays[1].view(), arrays[2].view());
  if (!own.ok()) return own.status();
  texts.insert(texts.end(), own->begin(), own->end());
  return absl::OkStatus();
}

/// Masks in the order of their pictures, with their texts once they have been encoded.
struct Encoded {
  std::vector<CocoMask> masks;
  std::vector<std::string> texts;
  std::size_t failed = 0;
};

absl::Status encode_pictures(Job& job, const Session& session, const EncodeOptions& options,
                             Encoded& encoded) {
  Batch batch;
  ReadAhead<absl::StatusOr<Pixels>> pictures(options.inputs.size(), kMasksAhead, [&](std::size_t index) {
    return read_pixels(options.inputs[index], options);
  });
  for (const std::string& path : options.inputs) {
    job.stages().begin("read");
    const absl::StatusOr<Pixels> pixels = pictures.next();
    if (job.interrupted()) return absl::CancelledError();
    if (!pixels.ok()) {
      if (options.inputs.size() == 1) return pixels.status();
      job.stages().interject("cumulus: " + std::string(pixels.status().message()));
      ++encoded.failed;
      continue;
    }
    if (!batch.has_room_for(*pixels)) {
      if (absl::Status done = encode(job, session, batch, encoded.texts); !done.ok()) return done;
      batch = Batch();
    }
    batch.add(*pixels);
    encoded.masks.push_back({fs::path(path).filename().string(), pixels->height, pixels->width, ""});
  }
  if (encoded.masks.empty()) return absl::OkStatus();
  return encode(job, session, batch, encoded.texts);
}

/// Of what is said already, and of the rest that has been done.
absl::Status outcome(std::size_t failed, std::size_t all, const std::string& output) {
  if (failed == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      failed, " of ", all, " masks could not be encoded, as said above; ", output, " has the others"));
}

absl::Status run_encode_pictures(Job& job, const EncodeOptions& options) {
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  Encoded encoded;
  if (absl::Status done = encode_pictures(job, *session, options, encoded); !done.ok()) return done;
  for (std::size_t i = 0; i < encoded.masks.size(); ++i)
    encoded.masks[i].counts = std::move(encoded.texts[i]);
  job.stages().begin("write");
  if (absl::Status written = write_coco_masks(options.output, encoded.masks); !written.ok()) return written;
  job.stages().end();
  job.report().add("command", "run-length coco-encode");
  job.report().add("masks", encoded.masks.size());
  job.report().add("failed", encoded.failed);
  job.report().add("output", options.output);
  job.describe_run();
  job.report_failure_too();
  return outcome(encoded.failed, options.inputs.size(), options.output);
}

absl::Status run_encode_dataset(Job& job, const EncodeOptions& options) {
  job.stages().begin("encode");
  const absl::StatusOr<CocoDataset> dataset = encode_coco_dataset(options.inputs.front());
  if (!dataset.ok()) return dataset.status();
  for (const std::string& failure : dataset->failures) job.stages().interject("cumulus: " + failure);
  if (!job.dry_run()) {
    if (absl::Status written = write_text(options.output, dataset->text); !written.ok()) return written;
  }
  job.stages().end();
  job.report().add("command", "run-length coco-encode");
  job.report().add("input", options.inputs.front());
  job.report().add("masks", dataset->masks);
  job.report().add("failed", dataset->failures.size());
  job.report().add("output", options.output);
  job.report().add("seconds", job.stages().seconds());
  job.report_failure_too();
  return outcome(dataset->failures.size(), dataset->masks + dataset->failures.size(), options.output);
}

absl::Status run_encode(Job& job, const EncodeOptions& options) {
  const bool dataset = options.inputs.size() == 1 && begins_as_json(options.inputs.front());
  return dataset ? run_encode_dataset(job, options) : run_encode_pictures(job, options);
}

}  // namespace

void add_coco_encode(CommandLine& line, CLI::App& group) {
  const auto encoded = std::make_shared<EncodeOptions>();
  CLI::App& encode = line.add(group, "coco-encode", "Encode masks as the COCO data set keeps them",
                              [encoded](Job& job) { return run_encode(job, *encoded); });
  encode
      .add_option(
          "masks", encoded->inputs,
          "Images or .npy of [height, width]: what is not black, or more than 0, is in the mask; or one "
          "COCO file (.json), whose polygons become masks: everything else in it stays as it is")
      ->required()
      ->type_name("MASK");
  line.add_output(encode, "-o,--output", encoded->output,
                  "File to write: a list of objects with size and counts", OutputFormat::kJson)
      .required()
      ->type_name("OUT.json");
  encode.add_flag("--alpha", encoded->alpha, "Take the alpha channel, not the colours");
  encode
      .add_option("--above", encoded->above,
                  "A pixel is in the mask where a sample is more than this: of 8-bit images 0 to 255, of "
                  "others 0 to 1")
      ->check(number_within(0));
}

}  // namespace cumulus::cli

#include "cli/commands/run_length/coco.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cli/app/checks.h"
#include "cli/commands/run_length/coco_file.h"
#include "cli/files/image.h"
#include "cumulus/coco_masks.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// Masks of one size go to the server together, up to about so many pixels.
constexpr std::int64_t kPixelsTogether = std::int64_t{1} << 25;

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

/// One where any of the samples of `channels`, [first, end), is above the threshold.
template <class T>
Pixels pixels_above(const Array& image, std::pair<std::size_t, std::size_t> channels, double threshold) {
  const Shape& shape = image.shape();
  const auto stride = static_cast<std::size_t>(shape[2]);
  const auto* sample = reinterpret_cast<const T*>(image.bytes().data());
  Pixels pixels{shape[0], shape[1], std::vector<std::uint8_t>(static_cast<std::size_t>(shape[0] * shape[1]))};
  for (std::uint8_t& one : pixels.ones) {
    one = std::any_of(sample + channels.first, sample + channels.second,
                      [=](T x) { return static_cast<double>(x) > threshold; })
              ? 1
              : 0;
    sample += stride;
  }
  return pixels;
}

absl::StatusOr<Pixels> read_pixels(const std::string& path, const EncodeOptions& options) {
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

absl::Status run_encode(Job& job, const EncodeOptions& options) {
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  std::vector<CocoMask> masks;
  std::vector<std::string> texts;
  Batch batch;
  for (const std::string& path : options.inputs) {
    job.stages().begin("read");
    const absl::StatusOr<Pixels> pixels = read_pixels(path, options);
    if (!pixels.ok()) return pixels.status();
    if (!batch.has_room_for(*pixels)) {
      if (absl::Status done = encode(job, *session, batch, texts); !done.ok()) return done;
      batch = Batch();
    }
    batch.add(*pixels);
    masks.push_back({fs::path(path).filename().string(), pixels->height, pixels->width, ""});
  }
  if (absl::Status done = encode(job, *session, batch, texts); !done.ok()) return done;
  for (std::size_t i = 0; i < masks.size(); ++i) masks[i].counts = std::move(texts[i]);
  job.stages().begin("write");
  if (absl::Status written = write_coco_masks(options.output, masks); !written.ok()) return written;
  job.stages().end();
  job.report().add("command", "run-length coco-encode");
  job.report().add("masks", masks.size());
  job.report().add("output", options.output);
  job.describe_run();
  return absl::OkStatus();
}

struct DecodeOptions {
  std::string input;
  std::string folder;
};

/// A file for each mask: named as the picture that it was made from, where all say so and no two say the
/// same; else by their numbers.
std::vector<fs::path> files_of(std::span<const CocoMask> masks, const fs::path& folder) {
  std::vector<fs::path> named;
  std::set<fs::path> distinct;
  for (const CocoMask& mask : masks) {
    named.push_back(folder / fs::path(mask.file_name).stem());
    named.back() += ".png";
    if (!fs::path(mask.file_name).stem().empty()) distinct.insert(named.back());
  }
  if (distinct.size() == masks.size()) return named;
  for (std::size_t i = 0; i < masks.size(); ++i) named[i] = folder / absl::StrFormat("%06d.png", i);
  return named;
}

/// Nobody has named these files one by one, so none is replaced.
absl::Status make_place(const fs::path& folder, std::span<const fs::path> files) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot make the folder ", folder.string(), ": ", error.message(), "; name another"));
  }
  for (const fs::path& file : files) {
    if (!fs::exists(file, error)) continue;
    return absl::AlreadyExistsError(
        absl::StrCat(file.string(), " exists and is not replaced; name another folder"));
  }
  return absl::OkStatus();
}

/// The masks of one size from `first` on that are decoded together, as UINT8 [masks, height, width].
absl::StatusOr<Array> decode(Job& job, const Session& session, std::span<const CocoMask> masks) {
  std::vector<std::string> texts;
  for (const CocoMask& mask : masks) texts.push_back(mask.counts);
  const auto runs = coco_runs(texts, masks[0].height, masks[0].width);
  if (!runs.ok()) return runs.status();
  const absl::StatusOr<Buffer> symbols = job.upload(session, ArrayView(runs->symbols));
  if (!symbols.ok()) return symbols.status();
  const absl::StatusOr<Buffer> lengths = job.upload(session, ArrayView(runs->lengths));
  if (!lengths.ok()) return lengths.status();
  const auto decoded = job.run(session, "decode",
                               decode_coco_masks(*symbols, *lengths, static_cast<std::int64_t>(masks.size()),
                                                 masks[0].height, masks[0].width));
  if (!decoded.ok()) return decoded.status();
  return job.download(session, *decoded, "array");
}

absl::Status write_masks(Array decoded, std::span<const fs::path> files) {
  const std::span<std::byte> pixels = decoded.mutable_bytes();
  for (std::byte& pixel : pixels) pixel = pixel == std::byte{0} ? pixel : std::byte{255};  // white
  const Shape size = {decoded.shape()[1], decoded.shape()[2]};
  const std::size_t bytes = pixels.size() / files.size();
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ArrayView mask(ElementType::kUint8, pixels.subspan(i * bytes, bytes), size);
    if (absl::Status written = write_image(files[i].string(), mask); !written.ok()) return written;
  }
  return absl::OkStatus();
}

/// How many of the first masks have one size and few enough pixels.
std::size_t count_together(std::span<const CocoMask> masks) {
  const std::int64_t pixels = std::max<std::int64_t>(1, masks[0].height * masks[0].width);
  const std::size_t most =
      std::clamp<std::size_t>(static_cast<std::size_t>(kPixelsTogether / pixels), 1, masks.size());
  std::size_t count = 1;
  while (count < most && masks[count].height == masks[0].height && masks[count].width == masks[0].width)
    ++count;
  return count;
}

absl::Status run_decode(Job& job, const DecodeOptions& options) {
  job.stages().begin("read");
  const absl::StatusOr<std::vector<CocoMask>> masks = read_coco_masks(options.input);
  if (!masks.ok()) return masks.status();
  const std::vector<fs::path> files = files_of(*masks, options.folder);
  if (absl::Status made = make_place(options.folder, files); !made.ok()) return made;
  const absl::StatusOr<Session> session = job.open_session();
  if (!session.ok()) return session.status();
  for (std::size_t first = 0; first < masks->size();) {
    const std::size_t count = count_together(std::span(*masks).subspan(first));
    absl::StatusOr<Array> decoded = decode(job, *session, std::span(*masks).subspan(first, count));
    if (!decoded.ok()) return decoded.status();
    job.stages().begin("write");
    absl::Status written = write_masks(*std::move(decoded), std::span(files).subspan(first, count));
    if (!written.ok()) return written;
    first += count;
  }
  job.stages().end();
  job.report().add("command", "run-length coco-decode");
  job.report().add("input", options.input);
  job.report().add("masks", masks->size());
  job.report().add("output", options.folder);
  job.describe_run();
  return absl::OkStatus();
}

absl::StatusOr<Report> describe(const CocoMask& mask) {
  const auto counts = coco_counts(mask.counts, mask.height, mask.width);
  if (!counts.ok()) return counts.status();
  const CocoBox box = coco_box(*counts, mask.height);
  Report report;
  if (!mask.file_name.empty()) report.add("file_name", mask.file_name);
  report.add("height", mask.height);
  report.add("width", mask.width);
  report.add("runs", counts->size());
  report.add("area", coco_area(*counts));
  report.add("bbox", std::vector<std::int64_t>{box.x, box.y, box.width, box.height});
  return report;
}

}  // namespace

absl::Status describe_coco_file(Job& job, const std::string& path) {
  const absl::StatusOr<std::vector<CocoMask>> masks = read_coco_masks(path);
  if (!masks.ok()) return masks.status();
  std::vector<Report> reports;
  for (const CocoMask& mask : *masks) {
    absl::StatusOr<Report> report = describe(mask);
    if (!report.ok()) return report.status();
    reports.push_back(*std::move(report));
  }
  job.report().add("command", "run-length info");
  job.report().add("input", path);
  job.report().add("masks", std::move(reports));
  return absl::OkStatus();
}

void add_coco_commands(CommandLine& line, CLI::App& group) {
  const auto encoded = std::make_shared<EncodeOptions>();
  CLI::App& encode = line.add(group, "coco-encode", "Encode masks as the COCO data set keeps them",
                              [encoded](Job& job) { return run_encode(job, *encoded); });
  encode.add_option("masks", encoded->inputs, "Images: what is not black is in the mask")
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

  const auto decoded = std::make_shared<DecodeOptions>();
  CLI::App& decode = line.add(group, "coco-decode", "Draw a COCO file's masks: white in black, a PNG each",
                              [decoded](Job& job) { return run_decode(job, *decoded); });
  decode.add_option("input", decoded->input, "Masks as objects with size and counts (.json)")
      ->required()
      ->type_name("IN.json");
  decode.add_option("-o,--output", decoded->folder, "Folder for the images, made where there is none")
      ->required()
      ->type_name("DIR");
}

}  // namespace cumulus::cli

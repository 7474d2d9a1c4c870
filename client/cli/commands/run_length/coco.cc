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

#include "cli/commands/run_length/coco_encode.h"
#include "cli/commands/run_length/coco_file.h"
#include "cli/files/image.h"
#include "cumulus/coco_masks.h"

namespace cumulus::cli {
namespace {

namespace fs = std::filesystem;

/// Masks of one size come from the server together, up to about so many pixels.
constexpr std::int64_t kPixelsTogether = std::int64_t{1} << 25;

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
  if (check_image_name(folder.string()).ok() && !fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output: is ", folder.string(), ", and a folder for a picture of each mask is right"));
  }
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
  job.begin_read();
  const absl::StatusOr<std::vector<CocoMask>> masks = read_coco_masks(options.input);
  if (!masks.ok()) return masks.status();
  const std::vector<fs::path> files = files_of(*masks, options.folder);
  if (!job.dry_run()) {
    if (absl::Status made = make_place(options.folder, files); !made.ok()) return made;
  }
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
  add_coco_encode(line, group);

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

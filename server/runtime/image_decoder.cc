#include "server/runtime/image_decoder.h"

#include <absl/strings/ascii.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/decoding/v1/decoding.pb.h"
#include "images/load.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/decode/png_chunks.h"
#include "server/runtime/decode/worker.h"

namespace cumulus::server {
namespace {

// Small images may be as compressible as they like.
constexpr std::size_t kFreeExpansionBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxExpansion = 2000;

constexpr std::array<std::string_view, 5> kFormatNames = {"EXR", "HDR", "PNG", "TIFF", "JPEG"};

/// Text that came out of a file or a library, fit for a message.
std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 200;
  std::string result(text.substr(0, kMaxBytes));
  for (char& c : result) c = absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : ' ';
  return result;
}

using decoding::v1::Answer;
using decoding::v1::Failure;

/// A worker with one image, and the way from the image's header to its pixels. What the worker says is as
/// little trusted as the file: it decides nothing here.
class Decoder {
 public:
  Decoder(DecodeHelper& helper, const v1::EncodedImage& image, const EncodedFile& file,
          const ImageLimits& limits, std::string_view field, const DecodeControl& control)
      : helper_(helper), image_(image), file_(file), limits_(limits), field_(field), control_(control) {}
  ~Decoder() { dismiss_worker(); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  absl::StatusOr<DecodedImage> decode() {
    if (absl::Status status = open(); !status.ok()) return status;
    if (absl::Status status = check_header(); !status.ok()) return status;
    if (absl::Status status = select_channels(); !status.ok()) return status;
    if (absl::Status status = check_size(); !status.ok()) return status;
    if (control_.admit) {
      if (absl::Status status = control_.admit(admitted_bytes()); !status.ok()) return status;
    }
    return read();
  }

 private:
  absl::Status open() {
    const std::string format = images::format_by_first_bytes(file_.bytes);
    if (format.empty())
      return bad_data("is of no format that is read here; send EXR, HDR, PNG, TIFF or JPEG");
    if (image_.subimage() < 0) {
      return bad_field(concat(field_, ".subimage"), concat("is ", image_.subimage(), "; 0 is the first"));
    }
    std::vector<std::string_view> pieces = {file_.bytes};
    if (format == "png") {
      PngChunks png = parse_png_chunks(file_.bytes);
      if (const absl::Status status = check_png(png.size); !status.ok()) return status;
      pieces = std::move(png.kept);
    }
    const absl::StatusOr<Descriptor> file = sealed_copy(pieces);
    if (!file.ok()) return file.status();
    if (const absl::Status started = start_worker(format); !started.ok()) return started;
    decoding::v1::Open request;
    request.set_reader(format);
    request.set_subimage(image_.subimage());
    const absl::StatusOr<Answer> answer = ask(request, *file);
    if (!answer.ok()) return answer.status();
    if (answer->has_failure()) return failed(answer->failure(), limits_.working_bytes);
    take_header(answer->opened());
    return absl::OkStatus();
  }

  absl::Status start_worker(const std::string& reader) {
    absl::StatusOr<DecodeHelper::Worker> worker =
        helper_.start_worker(reader, {limits_.working_bytes + mapped_bytes(), limits_.processor_time});
    if (worker.ok()) {
      worker_ = *std::move(worker);
      return absl::OkStatus();
    }
    if (!absl::IsUnimplemented(worker.status())) return worker.status();
    return unsupported("IMAGES_UNSUPPORTED",
                       concat(field_, ": this server decodes no images: ", worker.status().message(),
                              ", or decode the image in the client and send an array"));
  }

  /// Before a worker sees it: a PNG says all of that in its first bytes.
  absl::Status check_png(const std::optional<PngChunks::Size>& size) {
    constexpr std::uint32_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
    if (!size || size->width > kMaxExtent || size->height > kMaxExtent) return absl::OkStatus();
    header_ = {.width = static_cast<int>(size->width),
               .height = static_cast<int>(size->height),
               .depth = 1,
               .channels = size->channels};
    header_.bytes = std::size_t{size->width} * size->height *
                    static_cast<std::size_t>(size->channels * size->bytes_per_channel);
    return check_header();
  }

  void take_header(const decoding::v1::Opened& opened) {
    header_ = {.width = opened.width(),
               .height = opened.height(),
               .depth = opened.depth(),
               .channels = opened.channels(),
               .deep = opened.deep(),
               .samples = opened.bytes() ? images::Samples::kUint8 : images::Samples::kFloat32,
               .bytes = opened.file_bytes()};
    header_.channel_names.assign(opened.channel_names().begin(), opened.channel_names().end());
  }

  /// Sends `request` with `file` and waits for the answer, as long as it is wanted.
  absl::StatusOr<Answer> ask(const google::protobuf::MessageLite& request, const Descriptor& file) {
    constexpr std::chrono::milliseconds kInterval(20);
    Answer answer;
    if (!worker_->channel.send(request, file)) return crashed();
    while (!worker_->channel.wait(kInterval)) {
      if (!control_.wanted) continue;
      if (const absl::Status wanted = control_.wanted(); !wanted.ok()) return wanted;
    }
    if (!worker_->channel.receive(answer) || answer.answer_case() == Answer::ANSWER_NOT_SET) return crashed();
    return answer;
  }

  absl::Status check_header() const {
    if (header_.deep) return bad_data("is a deep image; flatten it");
    if (header_.depth > 1) return bad_data("is a volume; send one slice as an image");
    if (header_.width < 1 || header_.height < 1 || header_.channels < 1) return bad_data("has no pixels");
    const auto pixels =
        static_cast<std::uint64_t>(header_.width) * static_cast<std::uint64_t>(header_.height);
    if (pixels > limits_.max_pixels) {
      return over_limit("max_pixels",
                        concat("is ", header_.width, " x ", header_.height, " = ", pixels,
                               " pixels; at most ", limits_.max_pixels, " (max_pixels) are decoded"));
    }
    if (static_cast<std::size_t>(header_.channels) > limits_.max_channels) {
      return over_limit("max_channels", concat("has ", header_.channels, " channels; at most ",
                                               limits_.max_channels, " (max_channels) are decoded"));
    }
    if (header_.bytes > kFreeExpansionBytes && header_.bytes / kMaxExpansion > file_.bytes.size()) {
      return over_limit("expansion", concat("expands from ", file_.bytes.size(), " to ", header_.bytes,
                                            " bytes; at most ", kMaxExpansion, " to 1 is decoded"));
    }
    return absl::OkStatus();
  }

  absl::Status select_channels() {
    const auto& names = header_.channel_names;
    if (image_.channels().empty()) {
      channels_.resize(static_cast<std::size_t>(header_.channels));
      std::iota(channels_.begin(), channels_.end(), 0);
    } else if (static_cast<std::size_t>(image_.channels_size()) > limits_.max_channels) {
      return over_limit("max_channels", concat("is asked for ", image_.channels_size(), " channels; at most ",
                                               limits_.max_channels, " (max_channels) are decoded"));
    }
    for (int i = 0; i < image_.channels_size(); ++i) {
      const auto found = std::find(names.begin(), names.end(), image_.channels(i));
      if (found == names.end()) {
        return bad_field(
            concat(field_, ".channels[", i, "]"),
            concat("'", printable(image_.channels(i)), "' is not in the image; it has ", channel_list()));
      }
      channels_.push_back(static_cast<int>(found - names.begin()));
    }
    first_ = *std::min_element(channels_.begin(), channels_.end());
    read_channels_ =
        static_cast<std::size_t>(*std::max_element(channels_.begin(), channels_.end()) - first_) + 1;
    in_order_ = read_channels_ == channels_.size();
    for (std::size_t i = 0; i < channels_.size(); ++i)
      in_order_ = in_order_ && channels_[i] == first_ + static_cast<int>(i);
    return absl::OkStatus();
  }

  absl::Status check_size() const {
    if (held_bytes() <= limits_.max_bytes) return absl::OkStatus();
    return over_limit("max_bytes", concat("takes ", held_bytes(), " bytes to decode; at most ",
                                          limits_.max_bytes, " (max_buffer_bytes) are allowed"));
  }

  absl::StatusOr<DecodedImage> read() {
    DecodedImage result{shape(channels_.size()), {}};
    const absl::StatusOr<Descriptor> pixels = shared_memory(result.shape.bytes());
    if (!pixels.ok()) return pixels.status();
    if (const absl::Status status = DecodeHelper::raise_memory(*worker_, admitted_bytes()); !status.ok())
      return status;
    decoding::v1::Read request;
    request.mutable_channels()->Assign(channels_.begin(), channels_.end());
    request.set_bytes(bytes_per_sample() == 1);
    const absl::StatusOr<Answer> answer = ask(request, *pixels);
    if (!answer.ok()) return answer.status();
    if (!answer->has_done()) return failed(answer->failure(), limits_.working_bytes + admitted_bytes());
    dismiss_worker();
    // Sealed before it is looked at: where the worker can still change it, that fails.
    absl::StatusOr<HostMemory> finished = map_finished(*pixels, result.shape.bytes());
    if (!finished.ok()) return finished.status();
    result.pixels = *std::move(finished);
    return result;
  }

  absl::Status failed(const Failure& failure, std::size_t allowed) const {
    switch (failure.kind()) {
      case Failure::UNSUPPORTED:
        return unsupported("IMAGES_UNSUPPORTED",
                           concat(field_, ".", file_.source,
                                  ": this server's image library cannot read this format from "
                                  "memory; use another format or send an array"));
      case Failure::NO_SUBIMAGE:
        return bad_field(concat(field_, ".subimage"),
                         concat("is ", image_.subimage(), "; the file has fewer images (0 is the first)"));
      case Failure::OUT_OF_MEMORY:
        return over_limit("decoder_bytes", concat("takes more than the ", allowed,
                                                  " bytes that reading it may take (decoder_bytes); send it "
                                                  "without its metadata, or as an array"));
      case Failure::EXCEPTION:
        return bad_data(concat("cannot be decoded (", printable(failure.text()), ")"));
      default:
        return damaged(failure.text());
    }
  }

  /// Why the worker is gone without an answer.
  absl::Status crashed() {
    const absl::StatusOr<int> ended = DecodeHelper::end_worker(*worker_);
    worker_.reset();
    if (!ended.ok()) return ended.status();
    const int status = *ended;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotBeConfined) {
      return unsupported("IMAGES_UNSUPPORTED",
                         concat(field_,
                                ": this server decodes no images, as its system cannot confine decoders "
                                "(resource limits, seccomp); send an array"));
    }
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (signal == SIGXCPU) {
      return over_limit("decode_time",
                        concat("takes more than ", absl::FormatDuration(limits_.processor_time),
                               " of processor time to decode (decode_time); send an array"));
    }
    if (signal == SIGKILL) {
      return exhausted("machine:memory",
                       concat(field_, ".", file_.source, ": the machine has no memory left to decode it"));
    }
    return bad_data(concat("made its decoder end (", signal > 0 ? ::strsignal(signal) : "without an answer",
                           "); write the file anew, or send an array"));
  }

  void dismiss_worker() {
    if (worker_) DecodeHelper::dismiss_worker(*worker_);
    worker_.reset();
  }

  /// Of the file, which the worker maps: of small ones that is among working_bytes.
  std::size_t mapped_bytes() const {
    constexpr std::size_t kSmallFile = std::size_t{4} << 20;
    return file_.bytes.size() > kSmallFile ? file_.bytes.size() : 0;
  }
  std::size_t bytes_per_sample() const {
    return header_.samples == images::Samples::kUint8 ? 1 : sizeof(float);
  }
  ArrayShape shape(std::size_t channels) const {
    return {bytes_per_sample() == 1 ? v1::UINT8 : v1::FLOAT32,
            {header_.height, header_.width, static_cast<std::int64_t>(channels)}};
  }
  /// The result, and the range of channels that it is gathered from.
  std::size_t held_bytes() const {
    return shape(channels_.size()).bytes() + (in_order_ ? 0 : shape(read_channels_).bytes());
  }
  /// Progressive, interlaced and single-tile files are held twice by their readers, in the file's samples;
  /// of small ones that is among what reading may take anyway.
  std::size_t admitted_bytes() const {
    const std::size_t reading = 2 * std::min(header_.bytes, kMaxArrayBytes);
    return held_bytes() + (reading > limits_.working_bytes ? reading - limits_.working_bytes : 0);
  }

  std::string channel_list() const {
    constexpr std::size_t kMaxListed = 16;
    std::string list;
    for (std::size_t i = 0; i < std::min(header_.channel_names.size(), kMaxListed); ++i) {
      list += concat(i > 0 ? ", " : "", printable(header_.channel_names[i]));
    }
    return header_.channel_names.size() > kMaxListed ? list + ", ..." : list;
  }

  absl::Status bad_data(std::string_view what) const {
    return bad_field(concat(field_, ".", file_.source), what);
  }
  absl::Status damaged(std::string_view why) const {
    return bad_data(concat("is damaged or cut short (", printable(why), "); send the whole file"));
  }
  absl::Status over_limit(std::string_view limit, std::string_view what) const {
    return exhausted(concat("limits:", limit), concat(field_, ".", file_.source, ": ", what));
  }

  DecodeHelper& helper_;
  const v1::EncodedImage& image_;
  const EncodedFile& file_;
  const ImageLimits& limits_;
  const std::string_view field_;
  const DecodeControl& control_;
  std::optional<DecodeHelper::Worker> worker_;
  images::Header header_;
  std::vector<int> channels_;  // those to keep, as the file numbers them
  int first_ = 0;              // the range of the file's channels that holds them all
  std::size_t read_channels_ = 0;
  bool in_order_ = true;  // the range is just the channels
};

}  // namespace

std::span<const std::string_view> image_formats() {
  if (!images::image_library_is_installed()) return {};
  return kFormatNames;
}

absl::StatusOr<DecodedImage> decode_image(DecodeHelper& helper, const v1::EncodedImage& image,
                                          const EncodedFile& file, const ImageLimits& limits,
                                          std::string_view field, const DecodeControl& control) {
  return Decoder(helper, image, file, limits, field, control).decode();
}

}  // namespace cumulus::server

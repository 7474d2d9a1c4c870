#include "server/runtime/image_decoder.h"

#include <OpenImageIO/filesystem.h>
#include <OpenImageIO/imageio.h>
#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

// Small images may be as compressible as they like.
constexpr std::size_t kFreeExpansionBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxExpansion = 2000;

struct Format {
  std::string_view reader;  // OpenImageIO's name
  std::string_view magic;
};
constexpr std::array kFormats = {
    Format{"openexr", "\x76\x2f\x31\x01"},
    Format{"hdr", "#?RADIANCE"},
    Format{"hdr", "#?RGBE"},
    Format{"png", "\x89PNG\r\n\x1a\n"},
    Format{"tiff", std::string_view("II*\0", 4)},
    Format{"tiff", std::string_view("MM\0*", 4)},
    Format{"tiff", std::string_view("II+\0", 4)},  // BigTIFF
    Format{"tiff", std::string_view("MM\0+", 4)},
    Format{"jpeg", "\xff\xd8\xff"},
};
constexpr std::array<std::string_view, 5> kFormatNames = {"EXR", "HDR", "PNG", "TIFF", "JPEG"};

const Format* find_format(std::string_view data) {
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& format) {
    return data.substr(0, format.magic.size()) == format.magic;
  });
  return found != kFormats.end() ? &*found : nullptr;
}

/// Text that came out of a file or a library, fit for a message.
std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 200;
  std::string result(text.substr(0, kMaxBytes));
  for (char& c : result) c = absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : ' ';
  return result;
}

/// One image file in memory, and the way from its header to its pixels.
class Decoder {
 public:
  Decoder(const v1::EncodedImage& image, const ImageLimits& limits, std::string_view field)
      : image_(image), limits_(limits), field_(field), file_(image.data().data(), image.data().size()) {}

  absl::StatusOr<DecodedImage> decode(const AdmitBytes& admit) {
    if (absl::Status status = open(); !status.ok()) return status;
    if (absl::Status status = check_header(); !status.ok()) return status;
    if (absl::Status status = select_channels(); !status.ok()) return status;
    if (absl::Status status = check_size(); !status.ok()) return status;
    if (admit) {
      if (absl::Status status = admit(held_bytes()); !status.ok()) return status;
    }
    return read();
  }

 private:
  absl::Status open() {
    const Format* format = find_format(image_.data());
    if (format == nullptr)
      return bad_data("is of no format that is read here; send EXR, HDR, PNG, TIFF or JPEG");
    if (image_.subimage() < 0) {
      return bad_field(concat(field_, ".subimage"), concat("is ", image_.subimage(), "; 0 is the first"));
    }
    input_ = OIIO::ImageInput::create(std::string(format->reader));
    if (input_ == nullptr || !input_->supports("ioproxy")) {
      OIIO::geterror();
      return unsupported("IMAGES_UNSUPPORTED",
                         concat(field_, ".data: this server's OpenImageIO cannot read ", format->reader,
                                " from memory; use another format or send an array"));
    }
    input_->threads(1);
    input_->set_ioproxy(&file_);
    OIIO::ImageSpec first;
    if (!input_->open(concat("request.", format->reader), first)) return damaged();
    if (image_.subimage() > 0 && !input_->seek_subimage(image_.subimage(), 0)) {
      input_->geterror();
      return bad_field(concat(field_, ".subimage"),
                       concat("is ", image_.subimage(), "; the file has fewer images (0 is the first)"));
    }
    spec_ = input_->spec();
    return absl::OkStatus();
  }

  absl::Status check_header() const {
    if (spec_.deep) return bad_data("is a deep image; flatten it");
    if (spec_.depth > 1) return bad_data("is a volume; send one slice as an image");
    if (spec_.width < 1 || spec_.height < 1 || spec_.nchannels < 1) return bad_data("has no pixels");
    const auto pixels = static_cast<std::uint64_t>(spec_.width) * static_cast<std::uint64_t>(spec_.height);
    if (pixels > limits_.max_pixels) {
      return over_limit("max_pixels", concat("is ", spec_.width, " x ", spec_.height, " = ", pixels,
                                             " pixels; at most ", limits_.max_pixels, " are decoded"));
    }
    if (static_cast<std::size_t>(spec_.nchannels) > limits_.max_channels) {
      return over_limit("max_channels", concat("has ", spec_.nchannels, " channels; at most ",
                                               limits_.max_channels, " are decoded"));
    }
    const std::size_t native_bytes = spec_.image_bytes(true);
    if (native_bytes > kFreeExpansionBytes && native_bytes / kMaxExpansion > image_.data().size()) {
      return over_limit("expansion", concat("expands from ", image_.data().size(), " to ", native_bytes,
                                            " bytes; at most ", kMaxExpansion, " to 1 is decoded"));
    }
    return absl::OkStatus();
  }

  absl::Status select_channels() {
    const auto& names = spec_.channelnames;
    if (image_.channels().empty()) {
      channels_.resize(static_cast<std::size_t>(spec_.nchannels));
      std::iota(channels_.begin(), channels_.end(), 0);
    } else if (static_cast<std::size_t>(image_.channels_size()) > limits_.max_channels) {
      return over_limit("max_channels", concat("is asked for ", image_.channels_size(), " channels; at most ",
                                               limits_.max_channels, " are decoded"));
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
                                          limits_.max_bytes, " are allowed"));
  }

  absl::StatusOr<DecodedImage> read() {
    DecodedImage result{shape(channels_.size()), {}};
    result.pixels = allocate_host(result.shape.bytes());
    if (in_order_) {
      if (absl::Status status = read_into(result.pixels); !status.ok()) return status;
      return result;
    }
    HostMemory range = allocate_host(shape(read_channels_).bytes());
    if (absl::Status status = read_into(range); !status.ok()) return status;
    gather(range, result.pixels);
    return result;
  }

  absl::Status read_into(const HostMemory& pixels) {
    const bool complete = input_->read_image(
        image_.subimage(), 0, first_, first_ + static_cast<int>(read_channels_),
        bytes_per_sample() == 1 ? OIIO::TypeDesc::UINT8 : OIIO::TypeDesc::FLOAT, pixels.data());
    // Readers that patch up what is missing (JPEG's) say so in an error beside their success.
    return complete && !input_->has_error() ? absl::OkStatus() : damaged();
  }

  void gather(const HostMemory& from, const HostMemory& to) const {
    const std::size_t sample = bytes_per_sample();
    std::byte* out = to.data();
    for (const std::byte* pixel = from.data(); pixel != from.data() + from.bytes();
         pixel += read_channels_ * sample) {
      for (const int channel : channels_) {
        std::memcpy(out, pixel + static_cast<std::size_t>(channel - first_) * sample, sample);
        out += sample;
      }
    }
  }

  std::size_t bytes_per_sample() const {
    return spec_.format.basetype == OIIO::TypeDesc::UINT8 ? 1 : sizeof(float);
  }
  ArrayShape shape(std::size_t channels) const {
    return {bytes_per_sample() == 1 ? v1::UINT8 : v1::FLOAT32,
            {spec_.height, spec_.width, static_cast<std::int64_t>(channels)}};
  }
  std::size_t held_bytes() const {
    return shape(channels_.size()).bytes() + (in_order_ ? 0 : shape(read_channels_).bytes());
  }

  std::string channel_list() const {
    constexpr std::size_t kMaxListed = 16;
    std::string list;
    for (std::size_t i = 0; i < std::min(spec_.channelnames.size(), kMaxListed); ++i) {
      list += concat(i > 0 ? ", " : "", printable(spec_.channelnames[i]));
    }
    return spec_.channelnames.size() > kMaxListed ? list + ", ..." : list;
  }

  absl::Status bad_data(std::string_view what) const { return bad_field(concat(field_, ".data"), what); }
  absl::Status damaged() const {
    return bad_data(
        concat("is damaged or cut short (", printable(input_->geterror()), "); send the whole file"));
  }
  absl::Status over_limit(std::string_view limit, std::string_view what) const {
    return exhausted(concat("limits:", limit), concat(field_, ".data: ", what));
  }

  const v1::EncodedImage& image_;
  const ImageLimits& limits_;
  const std::string_view field_;
  OIIO::Filesystem::IOMemReader file_;  // outlives input_, which reads from it
  std::unique_ptr<OIIO::ImageInput> input_;
  OIIO::ImageSpec spec_;
  std::vector<int> channels_;  // those to keep, as the file numbers them
  int first_ = 0;              // the range of the file's channels that holds them all
  std::size_t read_channels_ = 0;
  bool in_order_ = true;  // the range is just the channels
};

/// Decoding shares the machine with calls that compute: every reader works on the thread that asks it.
void keep_to_one_thread() {
  [[maybe_unused]] static const bool kOnce =
      OIIO::attribute("threads", 1) && OIIO::attribute("exr_threads", -1);
}

}  // namespace

std::span<const std::string_view> image_formats() { return kFormatNames; }

absl::StatusOr<DecodedImage> decode_image(const v1::EncodedImage& image, const ImageLimits& limits,
                                          std::string_view field, const AdmitBytes& admit) {
  keep_to_one_thread();
  try {
    return Decoder(image, limits, field).decode(admit);
  } catch (const std::bad_alloc&) {
    return exhausted("machine:memory", concat(field, ".data: the machine has no memory left to decode it"));
  } catch (const std::exception& error) {
    return bad_field(concat(field, ".data"), concat("cannot be decoded (", printable(error.what()), ")"));
  }
}

}  // namespace cumulus::server

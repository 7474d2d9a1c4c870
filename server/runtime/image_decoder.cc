#include "server/runtime/image_decoder.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "images/load.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

// Small images may be as compressible as they like.
constexpr std::size_t kFreeExpansionBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxExpansion = 2000;

struct Format {
  std::string_view reader;  // ImageLibrary's name
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
  Decoder(const images::ImageLibrary& library, const v1::EncodedImage& image, const ImageLimits& limits,
          std::string_view field)
      : library_(library), image_(image), limits_(limits), field_(field) {}

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
    const std::string reader(format->reader);
    if (!library_.reads_from_memory(reader)) {
      return unsupported("IMAGES_UNSUPPORTED",
                         concat(field_, ".data: this server's OpenImageIO cannot read ", reader,
                                " from memory; use another format or send an array"));
    }
    auto [file, error] = library_.open_memory(reader, image_.data());
    if (file == nullptr) return damaged(error);
    file_ = std::move(file);
    if (image_.subimage() > 0 && !library_.select_picture(*file_, image_.subimage())) {
      return bad_field(concat(field_, ".subimage"),
                       concat("is ", image_.subimage(), "; the file has fewer images (0 is the first)"));
    }
    header_ = library_.header(*file_);
    return absl::OkStatus();
  }

  absl::Status check_header() const {
    if (header_.deep) return bad_data("is a deep image; flatten it");
    if (header_.depth > 1) return bad_data("is a volume; send one slice as an image");
    if (header_.width < 1 || header_.height < 1 || header_.channels < 1) return bad_data("has no pixels");
    const auto pixels =
        static_cast<std::uint64_t>(header_.width) * static_cast<std::uint64_t>(header_.height);
    if (pixels > limits_.max_pixels) {
      return over_limit("max_pixels", concat("is ", header_.width, " x ", header_.height, " = ", pixels,
                                             " pixels; at most ", limits_.max_pixels, " are decoded"));
    }
    if (static_cast<std::size_t>(header_.channels) > limits_.max_channels) {
      return over_limit("max_channels", concat("has ", header_.channels, " channels; at most ",
                                               limits_.max_channels, " are decoded"));
    }
    if (header_.bytes > kFreeExpansionBytes && header_.bytes / kMaxExpansion > image_.data().size()) {
      return over_limit("expansion", concat("expands from ", image_.data().size(), " to ", header_.bytes,
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
    const std::string problem = library_.read(
        *file_, first_, first_ + static_cast<int>(read_channels_),
        bytes_per_sample() == 1 ? images::Samples::kUint8 : images::Samples::kFloat32, pixels.data());
    return problem.empty() ? absl::OkStatus() : damaged(problem);
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
    return header_.samples == images::Samples::kUint8 ? 1 : sizeof(float);
  }
  ArrayShape shape(std::size_t channels) const {
    return {bytes_per_sample() == 1 ? v1::UINT8 : v1::FLOAT32,
            {header_.height, header_.width, static_cast<std::int64_t>(channels)}};
  }
  std::size_t held_bytes() const {
    return shape(channels_.size()).bytes() + (in_order_ ? 0 : shape(read_channels_).bytes());
  }

  std::string channel_list() const {
    constexpr std::size_t kMaxListed = 16;
    std::string list;
    for (std::size_t i = 0; i < std::min(header_.channel_names.size(), kMaxListed); ++i) {
      list += concat(i > 0 ? ", " : "", printable(header_.channel_names[i]));
    }
    return header_.channel_names.size() > kMaxListed ? list + ", ..." : list;
  }

  absl::Status bad_data(std::string_view what) const { return bad_field(concat(field_, ".data"), what); }
  absl::Status damaged(std::string_view why) const {
    return bad_data(concat("is damaged or cut short (", printable(why), "); send the whole file"));
  }
  absl::Status over_limit(std::string_view limit, std::string_view what) const {
    return exhausted(concat("limits:", limit), concat(field_, ".data: ", what));
  }

  const images::ImageLibrary& library_;
  const v1::EncodedImage& image_;
  const ImageLimits& limits_;
  const std::string_view field_;
  images::ImageFile file_;
  images::Header header_;
  std::vector<int> channels_;  // those to keep, as the file numbers them
  int first_ = 0;              // the range of the file's channels that holds them all
  std::size_t read_channels_ = 0;
  bool in_order_ = true;  // the range is just the channels
};

/// Decoding shares the machine with calls that compute: every reader works on the thread that asks it.
void keep_to_one_thread(const images::ImageLibrary& library) {
  static std::once_flag once;
  std::call_once(once, library.keep_to_one_thread);
}

}  // namespace

std::span<const std::string_view> image_formats() {
  if (!images::image_library_is_installed()) return {};
  return kFormatNames;
}

absl::StatusOr<DecodedImage> decode_image(const v1::EncodedImage& image, const ImageLimits& limits,
                                          std::string_view field, const AdmitBytes& admit) {
  const absl::StatusOr<const images::ImageLibrary*> library = images::load_image_library();
  if (!library.ok()) {
    return unsupported("IMAGES_UNSUPPORTED",
                       concat(field, ": this server decodes no images: ", library.status().message(),
                              ", or decode the image in the client and send an array"));
  }
  keep_to_one_thread(**library);
  try {
    return Decoder(**library, image, limits, field).decode(admit);
  } catch (const std::bad_alloc&) {
    return exhausted("machine:memory", concat(field, ".data: the machine has no memory left to decode it"));
  } catch (const std::exception& error) {
    return bad_field(concat(field, ".data"), concat("cannot be decoded (", printable(error.what()), ")"));
  }
}

}  // namespace cumulus::server

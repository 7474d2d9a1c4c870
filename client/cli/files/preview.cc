#include "cli/files/preview.h"

#include <absl/status/status.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cli/files/extension.h"
#include "cli/files/half_float.h"
#include "cli/files/image.h"

namespace cumulus::cli {
namespace {

using Rgb = std::array<float, 3>;

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<Rgb> pixels;

  Picture(std::int64_t rows, std::int64_t columns)
      : height(rows), width(columns), pixels(static_cast<std::size_t>(rows * columns)) {}
  Rgb& at(std::int64_t y, std::int64_t x) { return pixels[static_cast<std::size_t>(y * width + x)]; }
  const Rgb& at(std::int64_t y, std::int64_t x) const {
    return pixels[static_cast<std::size_t>(y * width + x)];
  }
};

float linear_from_srgb(float s) { return s <= 0.04045F ? s / 12.92F : std::pow((s + 0.055F) / 1.055F, 2.4F); }
float srgb_from_linear(float l) {
  return l <= 0.0031308F ? 12.92F * l : 1.055F * std::pow(l, 1.0F / 2.4F) - 0.055F;
}

float luminance(const Rgb& c) { return 0.2126F * c[0] + 0.7152F * c[1] + 0.0722F * c[2]; }

/// Linear light; one or two channels are grey, a fourth is dropped. What is no number, or negative, is black.
Picture to_linear(const ArrayView& map) {
  const Shape& shape = map.shape();
  const std::size_t channels = shape.size() > 2 ? static_cast<std::size_t>(shape[2]) : 1;
  const auto* values8 = reinterpret_cast<const std::uint8_t*>(map.bytes().data());
  const auto* values16 = reinterpret_cast<const std::uint16_t*>(map.bytes().data());
  const auto* values32 = reinterpret_cast<const float*>(map.bytes().data());
  const auto linear_at = [&, type = map.type()](std::size_t i) {
    if (type == ElementType::kUint8) return linear_from_srgb(static_cast<float>(values8[i]) / 255.0F);
    return type == ElementType::kFloat16 ? float_from_half(values16[i]) : values32[i];
  };
  Picture picture(shape[0], shape[1]);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const std::size_t at = i * channels + (channels >= 3 ? c : 0);
      const float value = linear_at(at);
      picture.pixels[i][c] = value > 0.0F ? std::min(value, 1e30F) : 0.0F;
    }
  }
  return picture;
}

/// Each pixel repeated `factor` times in both directions.
Picture enlarge(const Picture& in, std::int64_t factor) {
  Picture out(in.height * factor, in.width * factor);
  for (std::int64_t y = 0; y < out.height; ++y) {
    for (std::int64_t x = 0; x < out.width; ++x) out.at(y, x) = in.at(y / factor, x / factor);
  }
  return out;
}

/// The means of blocks of `factor` by `factor` pixels; a rest at the right and lower edge is dropped.
Picture reduce(const Picture& in, std::int64_t factor) {
  Picture out(std::max<std::int64_t>(in.height / factor, 1), in.width / factor);
  for (std::int64_t y = 0; y < out.height; ++y) {
    const std::int64_t top = y * factor;
    const std::int64_t bottom = std::min(top + factor, in.height);
    const float share = 1.0F / static_cast<float>((bottom - top) * factor);
    for (std::int64_t x = 0; x < out.width; ++x) {
      Rgb sum{};
      for (std::int64_t row = top; row < bottom; ++row) {
        for (std::int64_t column = x * factor; column < (x + 1) * factor; ++column) {
          const Rgb& pixel = in.at(row, column);
          for (std::size_t c = 0; c < 3; ++c) sum[c] += pixel[c];
        }
      }
      for (std::size_t c = 0; c < 3; ++c) out.at(y, x)[c] = sum[c] * share;
    }
  }
  return out;
}

Picture to_preview_size(Picture in) {
  constexpr std::int64_t kMinWidth = 1024;
  constexpr std::int64_t kMaxWidth = 2048;
  constexpr std::int64_t kMaxEnlargedHeight = 8192;  // of narrow pictures that are very tall
  if (in.width < kMinWidth) {
    const std::int64_t most = std::max<std::int64_t>(kMaxEnlargedHeight / in.height, 1);
    return enlarge(in, std::min((kMinWidth + in.width - 1) / in.width, most));
  }
  if (in.width <= kMaxWidth) return in;
  return reduce(in, (in.width + kMaxWidth - 1) / kMaxWidth);
}

/// Exposes so that the mean of the logarithms of the luminance becomes a middle grey, compresses
/// highlights exponentially, and encodes for the screen: values in [0, 1].
void tone_map(Picture& picture) {
  constexpr float kKey = 0.25F;
  double logarithms = 0;
  std::int64_t lit = 0;
  for (const Rgb& pixel : picture.pixels) {
    if (luminance(pixel) <= 0.0F) continue;
    logarithms += std::log(static_cast<double>(luminance(pixel)));
    ++lit;
  }
  if (lit == 0) return;
  const auto exposure = kKey / static_cast<float>(std::exp(logarithms / static_cast<double>(lit)));
  for (Rgb& pixel : picture.pixels) {
    for (float& value : pixel) value = srgb_from_linear(1.0F - std::exp(-exposure * value));
  }
}

/// Blends a disk with soft edges over the picture; columns wrap around, as in a lat-long map.
void draw_disk(Picture& picture, const PicturePoint& point, float radius, const Rgb& colour, float opacity) {
  const float centre_x = point.u * static_cast<float>(picture.width) - 0.5F;
  const float centre_y = point.v * static_cast<float>(picture.height) - 0.5F;
  const auto reach = static_cast<std::int64_t>(std::ceil(radius + 0.5F));
  const auto middle_x = static_cast<std::int64_t>(std::lround(centre_x));
  const auto middle_y = static_cast<std::int64_t>(std::lround(centre_y));
  for (std::int64_t y = std::max<std::int64_t>(middle_y - reach, 0);
       y <= std::min(middle_y + reach, picture.height - 1); ++y) {
    for (std::int64_t x = middle_x - reach; x <= middle_x + reach; ++x) {
      const float distance = std::hypot(static_cast<float>(x) - centre_x, static_cast<float>(y) - centre_y);
      const float cover = opacity * std::clamp(radius + 0.5F - distance, 0.0F, 1.0F);
      if (cover <= 0.0F) continue;
      const std::int64_t column = x % picture.width;
      Rgb& pixel = picture.at(y, column < 0 ? column + picture.width : column);
      for (std::size_t c = 0; c < 3; ++c) pixel[c] += cover * (colour[c] - pixel[c]);
    }
  }
}

/// All halos first, so that where dots crowd together they form one bright area with one dark edge.
void draw_dots(Picture& picture, std::span<const PicturePoint> points) {
  constexpr Rgb kDot = {1.0F, 0.55F, 0.05F};
  constexpr Rgb kHalo = {0.0F, 0.0F, 0.0F};
  if (points.empty()) return;
  const auto area = static_cast<float>(picture.pixels.size());
  const float radius = std::clamp(0.15F * std::sqrt(area / static_cast<float>(points.size())), 0.8F, 4.0F);
  for (const PicturePoint& point : points) draw_disk(picture, point, radius + 1.2F, kHalo, 0.7F);
  for (const PicturePoint& point : points) draw_disk(picture, point, radius, kDot, 1.0F);
}

}  // namespace

absl::StatusOr<Array> render_preview(const ArrayView& map, std::span<const PicturePoint> points) {
  const bool known = map.type() == ElementType::kUint8 || map.type() == ElementType::kFloat16 ||
                     map.type() == ElementType::kFloat32;
  if (!known || map.shape().size() < 2 || map.bytes().empty()) {
    return absl::InvalidArgumentError("a preview needs a map of float32, float16 or uint8 pixels");
  }
  Picture picture = to_preview_size(to_linear(map));
  tone_map(picture);
  draw_dots(picture, points);
  absl::StatusOr<Array> preview = Array::allocate(ElementType::kUint8, {picture.height, picture.width, 3});
  if (!preview.ok()) return preview;
  std::byte* out = preview->mutable_bytes().data();
  for (const Rgb& pixel : picture.pixels) {
    for (const float value : pixel) {
      *out++ = static_cast<std::byte>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255.0F));
    }
  }
  return preview;
}

absl::Status save_preview(const std::string& path, const ArrayView& picture) {
  WriteOptions options;
  if (extension_of(path) == ".png") options.compression = "png:3";
  return write_image(path, picture, options);
}

absl::Status write_preview(Stages& stages, const std::string& path, const ArrayView& map) {
  if (path.empty()) return absl::OkStatus();
  stages.begin("preview");
  const absl::StatusOr<Array> picture = render_preview(map, {});
  if (!picture.ok()) return picture.status();
  absl::Status written = save_preview(path, picture->view());
  stages.end();
  return written;
}

}  // namespace cumulus::cli

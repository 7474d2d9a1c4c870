#include "server/runtime/status_page/thumbnail.h"

#include <absl/time/time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace cumulus::server {
namespace {

constexpr std::int64_t kMaxSide = 96;
constexpr std::int64_t kMaxChannels = 4;
constexpr std::size_t kMaxRowBytes = std::size_t{1} << 20;
constexpr std::chrono::seconds kMaxWait{1};

struct Form {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t rows = 1;  // of the thumbnail
  std::int64_t columns = 1;

  explicit Form(const ArrayShape& shape)
      : height(shape.extents[0]),
        width(shape.extents[1]),
        channels(shape.extents.size() > 2 ? shape.extents[2] : 1) {
    const std::int64_t step = std::max<std::int64_t>(1, (std::max(height, width) + kMaxSide - 1) / kMaxSide);
    rows = std::max<std::int64_t>(1, height / step);
    columns = std::max<std::int64_t>(1, width / step);
  }
  std::int64_t source_row(std::int64_t row) const { return row * height / rows; }
  std::int64_t source_column(std::int64_t column) const { return column * width / columns; }
};

/// Rows on their way from the device. Shared with its callbacks, which may come after nobody waits.
struct Rows {
  BufferHandle source;
  std::vector<std::byte> bytes;
  std::mutex mutex;
  std::condition_variable arrived;
  std::int64_t missing = 0;
  bool failed = false;

  void one_came(const absl::Status& status) {
    const std::lock_guard lock(mutex);
    --missing;
    failed = failed || !status.ok();
    arrived.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex);
    return arrived.wait_for(lock, kMaxWait, [this] { return missing == 0; }) && !failed;
  }
};

float half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int mantissa = bits & 0x3FF;
  const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                          : exponent == 31 ? 65504.0F
                                           : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

float value_at(const std::byte* at, v1::ElementType type) {
  const auto load = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (type) {
    case v1::UINT8:
      return static_cast<float>(load(std::uint8_t{})) / 255;
    case v1::UINT16:
      return static_cast<float>(load(std::uint16_t{})) / 65535;
    case v1::FLOAT16:
      return half_value(load(std::uint16_t{}));
    case v1::FLOAT64:
      return static_cast<float>(load(double{}));
    default:
      return load(float{});
  }
}

bool is_float(v1::ElementType type) {
  return type == v1::FLOAT16 || type == v1::FLOAT32 || type == v1::FLOAT64;
}

std::vector<float> pixels_of(const Rows& rows, const Form& form, v1::ElementType type) {
  const auto element = static_cast<std::int64_t>(element_size(type));
  std::vector<float> values;
  for (std::int64_t row = 0; row < form.rows; ++row) {
    for (std::int64_t column = 0; column < form.columns; ++column) {
      const std::byte* pixel =
          rows.bytes.data() + (row * form.width + form.source_column(column)) * form.channels * element;
      for (std::int64_t channel = 0; channel < 3; ++channel) {  // one or two channels are shades of gray
        const std::int64_t from = form.channels >= 3 ? channel : 0;
        values.push_back(value_at(pixel + from * element, type));
      }
    }
  }
  return values;
}

/// Floats are light: the bright ones become white, and the eye's scale the screen's.
void tone_map(std::vector<float>& values) {
  std::vector<float> sorted;
  for (float& value : values) {
    if (!std::isfinite(value)) value = 0;
    sorted.push_back(value);
  }
  const auto bright = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 98 / 100);
  std::nth_element(sorted.begin(), bright, sorted.end());
  const float scale = *bright > 0 ? 1 / *bright : 1;
  for (float& value : values) value = std::pow(std::clamp(value * scale, 0.0F, 1.0F), 1 / 2.2F);
}

/// 24 bits a pixel, the lowest row first, rows padded to four bytes.
std::string bmp_file(const std::vector<float>& values, const Form& form) {
  constexpr std::uint32_t kHeaders = 54;
  const auto padded = static_cast<std::uint32_t>((form.columns * 3 + 3) / 4 * 4);
  const auto size = static_cast<std::uint32_t>(kHeaders + padded * static_cast<std::uint32_t>(form.rows));
  std::string file(size, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (int i = 0; i < 4; ++i) file[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  };
  file[0] = 'B';
  file[1] = 'M';
  put(2, size);
  put(10, kHeaders);
  put(14, kHeaders - 14);
  put(18, static_cast<std::uint32_t>(form.columns));
  put(22, static_cast<std::uint32_t>(form.rows));
  put(26, 1 | 24U << 16);  // a plane of 24 bits
  for (std::int64_t row = 0; row < form.rows; ++row) {
    for (std::int64_t i = 0; i < form.columns * 3; ++i) {
      const std::int64_t from =
          (form.rows - 1 - row) * form.columns * 3 + i / 3 * 3 + 2 - i % 3;  // blue first
      const float value = std::clamp(values[static_cast<std::size_t>(from)], 0.0F, 1.0F);
      file[static_cast<std::size_t>(kHeaders + row * padded + i)] =
          static_cast<char>(std::lround(value * 255));
    }
  }
  return file;
}

}  // namespace

bool is_picture(const ArrayShape& shape) {
  const auto& extents = shape.extents;
  if (extents.size() != 2 && extents.size() != 3) return false;
  if (extents[0] < 2 || extents[1] < 2) return false;
  if (extents.size() == 3 && (extents[2] < 1 || extents[2] > kMaxChannels)) return false;
  if (shape.type != v1::UINT8 && shape.type != v1::UINT16 && !is_float(shape.type)) return false;
  return shape.bytes() / static_cast<std::size_t>(extents[0]) <= kMaxRowBytes;
}

std::string thumbnail(Device& device, const BufferHandle& buffer) {
  const Form form(buffer->shape);
  const std::size_t row_bytes = buffer->shape.bytes() / static_cast<std::size_t>(form.height);
  const auto rows = std::make_shared<Rows>();
  rows->source = buffer;
  rows->bytes.resize(static_cast<std::size_t>(form.rows) * row_bytes);
  rows->missing = form.rows;
  for (std::int64_t row = 0; row < form.rows; ++row) {
    const std::span<std::byte> to(rows->bytes.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    device.copy_out(buffer->memory, static_cast<std::size_t>(form.source_row(row)) * row_bytes, to,
                    [rows](const absl::Status& status) { rows->one_came(status); });
  }
  if (!rows->wait()) return {};
  std::vector<float> values = pixels_of(*rows, form, buffer->shape.type);
  if (is_float(buffer->shape.type)) tone_map(values);
  return bmp_file(values, form);
}

}  // namespace cumulus::server

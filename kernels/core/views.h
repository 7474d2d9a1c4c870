#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cumulus {

/// Where memory lies. Part of every view's type, so that a device pointer cannot reach CPU code.
enum class Space { kHost, kDevice };

/// A non-owning run of `size` elements in memory space `S`.
template <class T, Space S>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}
  /// From a view of non-const elements.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T> && !std::is_same_v<U, T>>>
  constexpr Span(Span<U, S> other)
      : data_(other.data()), size_(other.size()) {}  // NOLINT(google-explicit-constructor)

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr std::size_t bytes() const { return size_ * sizeof(T); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr Span subspan(std::size_t first, std::size_t count) const { return {data_ + first, count}; }

  /// Host views only: element access.
  template <Space Here = S, class = std::enable_if_t<Here == Space::kHost>>
  constexpr T& operator[](std::size_t i) const {
    return data_[i];
  }
  template <Space Here = S, class = std::enable_if_t<Here == Space::kHost>>
  constexpr T* begin() const {
    return data_;
  }
  template <Space Here = S, class = std::enable_if_t<Here == Space::kHost>>
  constexpr T* end() const {
    return data_ + size_;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T>
using HostSpan = Span<T, Space::kHost>;
template <class T>
using DeviceSpan = Span<T, Space::kDevice>;

/// A non-owning image in memory space `S`: `height` rows of `width` pixels of `channels` interleaved
/// elements; row y begins at data + y * row_stride (in elements, at least width * channels).
template <class T, Space S>
struct ImageView {
  T* data = nullptr;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::int64_t row_stride = 0;

  constexpr ImageView() = default;
  /// Dense rows.
  constexpr ImageView(T* pixels, std::int64_t rows, std::int64_t columns, std::int64_t channel_count = 1)
      : ImageView(pixels, rows, columns, channel_count, columns * channel_count) {}
  constexpr ImageView(T* pixels, std::int64_t rows, std::int64_t columns, std::int64_t channel_count,
                      std::int64_t stride)
      : data(pixels), height(rows), width(columns), channels(channel_count), row_stride(stride) {}
  /// From a view of non-const elements.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T> && !std::is_same_v<U, T>>>
  constexpr ImageView(const ImageView<U, S>& other)  // NOLINT(google-explicit-constructor)
      : ImageView(other.data, other.height, other.width, other.channels, other.row_stride) {}

  constexpr std::int64_t pixels() const { return height * width; }
  constexpr std::int64_t elements() const { return height * width * channels; }
  constexpr bool dense() const { return row_stride == width * channels; }

  /// Host views only: the first element of row y.
  template <Space Here = S, class = std::enable_if_t<Here == Space::kHost>>
  constexpr T* row(std::int64_t y) const {
    return data + y * row_stride;
  }
};

template <class T>
using HostImage = ImageView<T, Space::kHost>;
template <class T>
using DeviceImage = ImageView<T, Space::kDevice>;

}  // namespace cumulus

#pragma once

#include "kernels/primitives/async_copy.cuh"
#include "kernels/recursive_filter/strips/load_store.cuh"

// Copies tiles of all channels into shared memory and out of it. A thread has the same elements of each tile:
// of every fourth row four neighbours, where rows begin at multiples of four, and of all rows one otherwise.
// Floats arrive by themselves (cp.async), halves through registers.

namespace cumulus::recursive_filter {

template <int Order, int Channels>
class ColourCopies {
 public:
  using Tile = ColourTile<Order, Channels>;

  __device__ ColourCopies(const StripImages& a, const StripPlace& at)
      : a_(a),
        at_(at),
        elements_(has_aligned_rows(a) ? kVector : 1),
        column_(elements_ == kVector ? Teams::line() % kRowVectors * kVector : Teams::line()),
        first_row_(elements_ == kVector ? Teams::line() / kRowVectors : 0),
        element_(at.real_column(a) * kSide * Channels + column_),
        is_in_width_(element_ < a.width * Channels) {}

  /// Starts to copy a tile; false: it is there already.
  __device__ __forceinline__ bool load(int tile, Tile& pixels) const {
    const std::int64_t first = at_.first_row<kSide>(tile);
    float* to = &pixels.column(column_).at(first_row_);
    const bool is_half = a_.images.kind == ElementKind::kHalf;
    if (!is_inside(tile) || (kAlwaysInVectors && elements_ == 1)) {
      is_half ? load_edge(first, to, a_.images.as<__half>()) : load_edge(first, to, a_.images.as<float>());
      return !is_half;
    }
    if constexpr (!kAlwaysInVectors) {
      if (elements_ == 1) {
        is_half ? load_column(first, to, a_.images.as<__half>())
                : load_column(first, to, a_.images.as<float>());
        return !is_half;
      }
    }
    const std::int64_t step = kVectorRows * a_.row_stride;
    const float* from = a_.images.as<float>() + source_of(first + first_row_);
    const std::uint64_t policy = evict_first_three_quarters();
#pragma unroll kRowsAtOnce
    for (int i = 0; i < kVectors; ++i) {
      copy_async(to + i * kVectorRows * Tile::kPitch, from, policy);
      from += step;
    }
    return true;
  }

  /// Vectors of halves go through registers: they are read before the thread waits for the slot, and put
  /// there after.
  __device__ bool reads_ahead(int tile) const {
    return a_.images.kind == ElementKind::kHalf && elements_ == kVector && is_inside(tile);
  }
  using Halves = uint2[kColourTile / 4];
  __device__ __forceinline__ void read(int tile, Halves& halves) const {
    const std::int64_t first = at_.first_row<kSide>(tile);
    const std::int64_t step = kVectorRows * a_.row_stride;
    const __half* from = a_.images.as<__half>() + source_of(first + first_row_);
#pragma unroll
    for (uint2& four : halves) {
      four = __ldg(reinterpret_cast<const uint2*>(from));
      from += step;
    }
  }
  __device__ __forceinline__ void put(const Halves& halves, Tile& pixels) const {
    float* to = &pixels.column(column_).at(first_row_);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const float2 low = __half22float2(reinterpret_cast<const __half2&>(halves[i].x));
      const float2 high = __half22float2(reinterpret_cast<const __half2&>(halves[i].y));
      *reinterpret_cast<float4*>(to + i * kVectorRows * Tile::kPitch) =
          make_float4(low.x, low.y, high.x, high.y);
    }
  }

  /// Writes the thread's part of a filtered tile, scaled.
  __device__ __forceinline__ void store(int tile, Tile& pixels) const {
    if (!is_in_width_) return;
    const std::int64_t first = at_.first_row<kSide>(tile);
    const int rows = static_cast<int>(min(a_.height - first, std::int64_t{kSide}));
    const std::int64_t row_elements = a_.width * Channels;
    std::int64_t element = at_.image * a_.filtered_stride + element_ + (first + first_row_) * row_elements;
    const float* from = &pixels.column(column_).at(first_row_);
    const float scale = a_.scale;
    if (elements_ == kVector) {
#pragma unroll kRowsAtOnce
      for (int row = first_row_; row < rows; row += kVectorRows) {
        const float4 four = *reinterpret_cast<const float4*>(from);
        store_four(a_.filtered, element,
                   make_float4(four.x * scale, four.y * scale, four.z * scale, four.w * scale));
        from += kVectorRows * Tile::kPitch;
        element += kVectorRows * row_elements;
      }
      return;
    }
#pragma unroll kRowsAtOnce
    for (int row = 0; row < rows; ++row) {
      a_.filtered.store(element, *from * scale);
      from += Tile::kPitch;
      element += row_elements;
    }
  }

 private:
  using Teams = StripTeams<Channels>;
  static constexpr int kSide = kColourTile;
  static constexpr int kRowVectors = Teams::kLines / kVector;  // of a row of a tile
  static constexpr int kVectorRows = Teams::kLines / kRowVectors;
  static constexpr int kVectors = kSide / kVectorRows;  // of a thread
  // Rows begin at multiples of four elements, unless an image's address does not. The code of load_column
  // would cost pixels of four channels a tenth: what the stages execute fills the instruction caches.
  static constexpr bool kAlwaysInVectors = Channels % kVector == 0;

  /// Whether all that the thread has of a tile lies in the image.
  __device__ bool is_inside(int tile) const {
    const std::int64_t first = at_.first_row<kSide>(tile);
    return first >= 0 && first + kSide <= a_.height && is_in_width_;
  }
  /// The thread's first element of an image's row.
  __device__ std::int64_t source_of(std::int64_t row) const {
    return at_.image * a_.image_stride + row * a_.row_stride + element_;
  }
  __device__ static bool has_aligned_rows(const StripImages& a) {
    const std::int64_t elements = a.row_stride | a.image_stride | (a.width * Channels) | a.filtered_stride;
    const auto addresses =
        reinterpret_cast<std::uintptr_t>(a.images.first) | reinterpret_cast<std::uintptr_t>(a.filtered.first);
    const unsigned int bytes = a.images.kind == ElementKind::kHalf ? sizeof(uint2) : sizeof(float4);
    return elements % kVector == 0 && addresses % bytes == 0;
  }

  /// A column of a tile that lies inside the image.
  template <class T>
  __device__ __forceinline__ void load_column(std::int64_t first, float* to, const T* image) const {
    constexpr int kAtOnce = 8;
    const T* from = image + source_of(first);
#pragma unroll 1
    for (int row = 0; row < kSide; row += kAtOnce) {
      T elements[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if constexpr (sizeof(T) == sizeof(float)) {
          copy_async_word(to + (row + i) * Tile::kPitch, from, evict_first_three_quarters());
        } else {
          elements[i] = __ldg(from);
        }
        from += a_.row_stride;
      }
      if constexpr (sizeof(T) < sizeof(float)) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) to[(row + i) * Tile::kPitch] = __half2float(elements[i]);
      }
    }
  }
  /// The thread's part of a tile as the image's boundary continues it.
  template <class T>
  __device__ __forceinline__ void load_edge(std::int64_t first, float* to, const T* image) const {
#pragma unroll 1
    for (int i = 0; i < elements_; ++i) {
      const std::int64_t pixel = continued((element_ + i) / Channels, a_.width, a_.boundary_x);
      const std::int64_t element = pixel * Channels + (column_ + i) % Channels;
#pragma unroll 1
      for (int row = first_row_; row < kSide; row += elements_) {
        const std::int64_t source = continued(first + row, a_.height, a_.boundary_y);
        const bool is_there = pixel >= 0 && source >= 0;
        const T* from =
            is_there ? image + at_.image * a_.image_stride + source * a_.row_stride + element : image;
        float* at = to + (row - first_row_) * Tile::kPitch + i;
        if constexpr (sizeof(T) == sizeof(float)) {
          copy_async_word_or_zero(at, from, is_there);
        } else {
          *at = is_there ? __half2float(__ldg(from)) : 0;
        }
      }
    }
  }

  const StripImages& a_;
  const StripPlace& at_;
  const int elements_;  // neighbours that the thread has of a row; and the step to its next row
  const int column_, first_row_;
  const std::int64_t element_;  // of an image's row
  const bool is_in_width_;
};

}  // namespace cumulus::recursive_filter

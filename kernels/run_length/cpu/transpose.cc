#include "kernels/run_length/transpose/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/core/fresh_pages.h"
#include "kernels/core/parallel.h"
#include "kernels/core/without_cuda.h"
#include "kernels/primitives/streaming_stores.h"
#include "kernels/run_length/check.h"
#include "kernels/run_length/element.h"

namespace cumulus::run_length {
namespace {

/// Pixels of the side of a square that is transposed at once.
template <class T>
constexpr std::int64_t kSquare = sizeof(T) <= 4 ? 64 : 32;

/// Columns of a piece of work, each a row of the result.
constexpr std::int64_t kPieceColumns = 512;

/// A batch of at least so many bytes does not stay in the caches.
constexpr std::size_t kStreamedBytes = 4 << 20;

/// Writes every stride-th of `count` elements side by side; past the caches if `stream` and the elements have
/// 16 bytes.
template <class T>
void write_column(const T* from, std::int64_t stride, std::int64_t count, T* to,
                  [[maybe_unused]] bool stream) {
  if constexpr (sizeof(T) == 16) {
    if (stream) {
      for (std::int64_t i = 0; i < count; ++i) stream_16_bytes(from + i * stride, to + i);
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

/// Of the side of a block of bytes that lies in registers.
constexpr std::int64_t kBlock = 16;
using BlockRow = std::uint8_t __attribute__((vector_size(kBlock)));

/// Transposes 16 x 16 bytes. Row i interleaved with row i + 8 rotates the eight bits of a byte's place (its
/// row and its column) by one; four times exchanges row and column.
void transpose_block(const std::uint8_t* from, std::int64_t from_stride, std::uint8_t* to,
                     std::int64_t to_stride) {
  BlockRow rows[kBlock];
  for (std::int64_t i = 0; i < kBlock; ++i) std::memcpy(&rows[i], from + i * from_stride, kBlock);
  for (int round = 0; round < 4; ++round) {
    BlockRow next[kBlock];
    for (std::int64_t i = 0; i < kBlock / 2; ++i) {
      const BlockRow& a = rows[i];
      const BlockRow& b = rows[i + kBlock / 2];
      next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] =
          __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::copy_n(next, kBlock, rows);
  }
  for (std::int64_t i = 0; i < kBlock; ++i) std::memcpy(to + i * to_stride, &rows[i], kBlock);
}

/// By way of a small array: of an image whose rows are a power of two apart, a square's rows would evict
/// each other from the L1 cache.
template <class T>
void transpose_square(const T* from, T* to, const ImageBatch& batch, std::int64_t y, std::int64_t x) {
  constexpr std::int64_t kSide = kSquare<T>;
  const std::int64_t rows = std::min(kSide, batch.height - y);
  const std::int64_t columns = std::min(kSide, batch.width - x);
  T square[kSide * kSide];
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(from + (y + row) * batch.width + x, columns, square + row * kSide);
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (rows % kBlock == 0 && columns % kBlock == 0) {
      for (std::int64_t column = 0; column < columns; column += kBlock) {
        for (std::int64_t row = 0; row < rows; row += kBlock)
          transpose_block(square + row * kSide + column, kSide, to + (x + column) * batch.height + y + row,
                          batch.height);
      }
      return;
    }
  }
  for (std::int64_t column = 0; column < columns; ++column) {
    write_column(square + column, kSide, rows, to + (x + column) * batch.height + y,
                 batch.bytes() >= kStreamedBytes);
  }
}

template <class T>
void transpose(CpuExecutor& executor, const ImageBatch& batch, const T* from, T* to) {
  const std::int64_t squares_down = divide_up(batch.height, kSquare<T>);
  const std::int64_t pieces = divide_up(batch.width, kPieceColumns);  // of a row of squares
  const std::int64_t pixels = batch.height * batch.width;
  // A piece goes to as many rows of the result, each of which may begin a large page.
  if (batch.bytes() >= kStreamedBytes) {
    touch_pages(executor, HostSpan<std::byte>(reinterpret_cast<std::byte*>(to), batch.bytes()));
  }
  const auto transpose_piece = [&](std::int64_t row, std::int64_t begin) {
    const std::int64_t offset = row / squares_down * pixels;
    for (std::int64_t x = begin; x < std::min(begin + kPieceColumns, batch.width); x += kSquare<T>)
      transpose_square(from + offset, to + offset, batch, row % squares_down * kSquare<T>, x);
  };
  parallel_ranges(executor, batch.images * squares_down * pieces, 1,
                  [&](std::int64_t first, std::int64_t end) {
                    for (std::int64_t i = first; i < end; ++i)
                      transpose_piece(i / pieces, i % pieces * kPieceColumns);
                    finish_streaming();
                  });
}

}  // namespace
}  // namespace cumulus::run_length

namespace cumulus {

void transpose_images(CpuExecutor& executor, const ImageBatch& batch, HostSpan<const std::byte> from,
                      HostSpan<std::byte> to) {
  using namespace run_length;
  check_transpose(batch, from, to);
  executor.check_interrupt();
  with_element(batch.element_bytes, [&]<class T>(T) {
    transpose(executor, batch, reinterpret_cast<const T*>(from.data()), reinterpret_cast<T*>(to.data()));
  });
}

#if !CUMULUS_WITH_CUDA
void CUMULUS_WITHOUT_CUDA(transpose_images, const ImageBatch&, DeviceSpan<const std::byte>,
                          DeviceSpan<std::byte>);
#endif

}  // namespace cumulus

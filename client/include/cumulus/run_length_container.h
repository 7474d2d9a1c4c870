#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cumulus/array.h"
#include "cumulus/run_length.h"

/// Runs in one block of bytes: an .rle file. docs/operations/run_length.md describes it byte by byte.
namespace cumulus {

/// The container of `array`, whose runs `symbols` and `counts` are: what encode_run_lengths gives of it in
/// `order`, as counts. With `pixels`, symbols are [runs, channels] and the array's last extent is the
/// channels. Where the runs would take more bytes than the array, the array is stored as it is: the container
/// is then larger by its header alone, 128 bytes. INVALID_ARGUMENT where runs and array do not go together.
absl::StatusOr<std::vector<std::byte>> pack_run_lengths(const ArrayView& array, const ArrayView& symbols,
                                                        const ArrayView& counts, bool pixels,
                                                        RunOrder order = RunOrder::kRows);

/// A container's bytes, checked: whatever they hold, nothing below reads outside of them. Elements are those
/// of the array; with pixels, positions and counts are of pixels. Positions are those of the array in memory,
/// row by row, whichever order its runs are in.
class RunLengthContainer {
 public:
  /// Reads `bytes`, which have to outlive the container. INVALID_ARGUMENT where they are no container, and
  /// says why: wrong magic, version or checksum, truncated, too long, counts that do not add up to the shape.
  static absl::StatusOr<RunLengthContainer> parse(std::span<const std::byte> bytes);

  ElementType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  /// Whether the last extent is the channels of a pixel.
  bool pixels() const { return pixels_; }
  /// Whether the array is stored as it is, without runs.
  bool raw() const { return raw_; }
  RunOrder order() const { return order_; }
  /// The elements, or pixels, of the array.
  std::int64_t elements() const { return elements_; }
  /// Bytes of one of them.
  std::size_t element_bytes() const { return unit_bytes_; }
  /// Runs as they are stored; neighbours may have equal symbols. 0 where raw() is true.
  std::int64_t runs() const { return runs_; }
  /// Bytes that a run's count takes: 1, 2, 4 or 8.
  int count_bytes() const { return count_bytes_; }

  /// For decode_run_lengths: [runs], or [runs, channels], of the array's type.
  absl::StatusOr<Array> symbols() const;
  /// For decode_run_lengths: [runs], uint64.
  absl::StatusOr<Array> counts() const;

  /// The element, or pixel, at a position in row-major order: its bytes, inside the container.
  absl::StatusOr<std::span<const std::byte>> at(std::int64_t position) const;
  /// `count` elements, or pixels, from `first` on: [count] or [count, channels]. With RunOrder::kColumns each
  /// is looked up by itself.
  absl::StatusOr<Array> slice(std::int64_t first, std::int64_t count) const;
  /// Of an array [height, width] (or, with pixels, [height, width, channels]), the rectangle of `height` x
  /// `width` whose first row and column are `y` and `x`. Reads the runs of its rows (or columns), and no
  /// others.
  absl::StatusOr<Array> rectangle(std::int64_t y, std::int64_t x, std::int64_t height,
                                  std::int64_t width) const;
  /// The whole array, of its own shape, on this thread.
  absl::StatusOr<Array> decode() const;

 private:
  class Cursor;
  RunLengthContainer() = default;
  absl::Status check_counts() const;
  std::uint64_t count(std::int64_t run) const;
  std::uint64_t index_entry(std::int64_t entry) const;
  /// Where an element is among the runs.
  std::int64_t stored_position(std::int64_t position) const;
  /// Writes `count` elements from the stored position `first` on, which lie within the array.
  void copy(std::int64_t first, std::int64_t count, std::byte* to) const;
  /// Of an image in column order, which begins at the stored position `image`, a rectangle.
  void copy_columns(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t height,
                    std::int64_t width, std::byte* to) const;
  Shape shape_of(std::vector<std::int64_t> extents) const;

  ElementType type_ = ElementType::kUint8;
  Shape shape_;
  bool pixels_ = false;
  bool raw_ = false;
  RunOrder order_ = RunOrder::kRows;
  int count_bytes_ = 1;
  std::int64_t height_ = 0;  // of each image, where the array has images
  std::int64_t width_ = 0;
  std::size_t unit_bytes_ = 1;  // of an element or pixel
  std::int64_t channels_ = 1;
  std::int64_t elements_ = 0;
  std::int64_t runs_ = 0;
  std::span<const std::byte> index_;  // for every 256th run, the position at which it begins
  std::span<const std::byte> counts_;
  std::span<const std::byte> symbols_;  // or the whole array
};

}  // namespace cumulus

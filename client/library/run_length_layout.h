#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "cumulus/array.h"
#include "cumulus/run_length.h"

/// Where everything is in a run-length container, version 1. docs/operations/run_length.md says it in words.
namespace cumulus::run_length_layout {

inline constexpr std::array<unsigned char, 8> kMagic = {0x89, 'C', 'R', 'L', '\r', '\n', 0x1A, '\n'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 128;
inline constexpr std::uint32_t kElementTypes = 9;
inline constexpr std::uint32_t kMaxExtents = 8;
inline constexpr std::uint32_t kPixelsFlag = 1;
inline constexpr std::uint32_t kRawFlag = 2;
inline constexpr std::uint32_t kColumnOrder = 1;
inline constexpr std::int64_t kIndexedRuns = 256;
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 58;

/// A little-endian number of 1 to 8 bytes.
inline std::uint64_t load_unsigned(const std::byte* from, int bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, from, static_cast<std::size_t>(bytes));
  return value;
}
inline void store_unsigned(std::uint64_t value, int bytes, std::byte* to) {
  std::memcpy(to, &value, static_cast<std::size_t>(bytes));
}

struct Header {
  std::uint32_t version = kVersion;
  std::uint32_t element_type = 0;
  std::uint32_t flags = 0;
  std::uint32_t count_bytes = 0;
  std::uint32_t order = 0;
  std::uint32_t extents = 0;
  std::uint64_t runs = 0;
  std::array<std::uint64_t, kMaxExtents> shape = {};
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_crc32c = 0;
  std::uint32_t header_crc32c = 0;
};

/// Calls field(offset, bytes, value) for each field.
template <class AnyHeader, class Field>
void for_each_field(AnyHeader& header, const Field& field) {
  field(8, 4, header.version);
  field(12, 4, header.element_type);
  field(16, 1, header.flags);
  field(17, 1, header.count_bytes);
  field(18, 1, header.order);
  field(19, 1, header.extents);
  field(24, 8, header.runs);
  for (std::size_t i = 0; i < kMaxExtents; ++i) field(32 + 8 * i, 8, header.shape[i]);
  field(96, 8, header.payload_bytes);
  field(104, 4, header.payload_crc32c);
  field(124, 4, header.header_crc32c);
}

/// Of at least kHeaderBytes.
inline Header read_header(std::span<const std::byte> bytes) {
  Header header;
  for_each_field(header, [&]<class T>(std::size_t offset, int size, T& value) {
    value = static_cast<T>(load_unsigned(bytes.data() + offset, size));
  });
  return header;
}

/// What follows the header: index, counts (padded to a multiple of 8), symbols.
struct Sections {
  std::size_t index_bytes;
  std::size_t counts_bytes;
  std::size_t padded_counts_bytes;
  std::size_t symbols_bytes;

  std::size_t bytes() const { return index_bytes + padded_counts_bytes + symbols_bytes; }
};

inline Sections sections_of(std::uint64_t runs, std::size_t count_bytes, std::size_t unit_bytes) {
  const std::size_t counts = runs * count_bytes;
  return {(runs + kIndexedRuns - 1) / kIndexedRuns * 8, counts, (counts + 7) / 8 * 8, runs * unit_bytes};
}

/// What runs are of.
struct Unit {
  std::size_t bytes;      // of one
  std::int64_t channels;  // in one
  std::int64_t elements;  // how many the array has
  // Of each of the images that the last two extents (of pixels, the two before the last) are. 0: there are
  // fewer.
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// INVALID_ARGUMENT for shapes that no array has, or that have no columns where `order` needs them.
absl::StatusOr<Unit> unit_of(ElementType type, const Shape& shape, bool pixels, RunOrder order);

}  // namespace cumulus::run_length_layout

#pragma once

// The .cst layout of a sampling table: one contiguous little-endian blob, the same in a file, in
// host memory and in device memory. docs/operations/sampling_table.md has it byte by byte.
// C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cumulus::sampling {

/// What the table's plane stands for.
enum class Projection : std::uint32_t {
  kLatLong = 1,    ///< The sphere: rows are polar angle from +Y, columns azimuth; pdf per steradian.
  kPlane = 2,      ///< The unit square; pdf per unit of area.
  kEqualArea = 3,  ///< The sphere, as cumulus/equal_area.h has it; square; pdf per steradian.
};

/// Whether positions are directions.
constexpr bool on_sphere(Projection projection) { return projection != Projection::kPlane; }

/// How a cell is found.
enum class Method : std::uint32_t {
  kCutpointBinary = 1,  ///< A guide table, then binary search between two of its entries.
};

inline constexpr char kMagic[8] = {'C', 'U', 'M', 'S', 'T', '\0', '\r', '\n'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kHeaderBytes = 256;
/// Every section begins at a multiple of this.
inline constexpr std::uint64_t kSectionAlignment = 256;
/// The largest width and height.
inline constexpr std::uint32_t kMaxExtent = 32768;

/// The first 256 bytes of a table.
///
/// Sections, of which each begins at its offset from the start of the table:
///   marginal_cdf   u32[height]         lower bound of each row in [0, 2^32)
///   marginal_guide u16[marginal_guide_size]
///   row_cdf        u32[height][width]  lower bound of each column within its row
///   row_guide      u16[height][row_guide_size]
///
/// A lower bound is the mass before the cell in units of 2^-32 of the whole. kEmptyTail stands for
/// a cell of no mass behind the last cell that has any. Guide entry g is the cell of the smallest x
/// with floor(x * guide_size / 2^32) = g.
struct TableHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t header_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t layers = 0;  ///< 1; more in a later version.
  Projection projection = Projection::kPlane;
  Method method = Method::kCutpointBinary;
  std::uint32_t interpolation = 0;  ///< 0: constant over each cell.
  std::uint32_t flags = 0;          ///< 0.
  std::uint32_t crc32c = 0;         ///< In a file, of all its bytes with this field zero; 0 in memory.
  std::uint32_t marginal_guide_size = 0;
  std::uint32_t row_guide_size = 0;
  std::uint64_t marginal_cdf_offset = 0;
  std::uint64_t marginal_guide_offset = 0;
  std::uint64_t row_cdf_offset = 0;
  std::uint64_t row_guide_offset = 0;
  unsigned char reserved[160] = {};  ///< Zero.
};
static_assert(sizeof(TableHeader) == kHeaderBytes, "the header's size is part of the format");
static_assert(offsetof(TableHeader, total_bytes) == 16, "part of the format");
static_assert(offsetof(TableHeader, projection) == 36, "part of the format");
static_assert(offsetof(TableHeader, crc32c) == 52, "part of the format");
static_assert(offsetof(TableHeader, marginal_cdf_offset) == 64, "part of the format");
static_assert(offsetof(TableHeader, reserved) == 96, "part of the format");
static_assert(std::is_trivially_copyable<TableHeader>::value, "a header is read with memcpy");

/// The stored lower bound of a cell without mass behind the last cell that has any. No cell with
/// mass begins there, so that u32 suffices and the last cell's upper bound, 2^32, needs no entry.
inline constexpr std::uint32_t kEmptyTail = 0xFFFFFFFFu;
/// All the mass of a row, or of the table.
inline constexpr std::uint64_t kWholeMass = std::uint64_t{1} << 32;

enum class TableError {
  kNone,
  kTruncatedHeader,
  kNotATable,
  kUnknownVersion,
  kWrongHeaderSize,
  kWrongTotalSize,
  kBadExtent,
  kUnknownProjection,
  kUnknownMethod,
  kUnknownOption,
  kBadGuideSize,
  kMisalignedSection,
  kSectionOutOfBounds,
};

/// What is wrong and what would be right, as a clause.
inline const char* describe(TableError error) {
  switch (error) {
    case TableError::kNone:
      return "the table's header is valid";
    case TableError::kTruncatedHeader:
      return "the table is shorter than its header, which takes 256 bytes";
    case TableError::kNotATable:
      return "the first eight bytes are not those of a sampling table (CUMST, 0, CR, LF)";
    case TableError::kUnknownVersion:
      return "the table's version is not 1, the only one that this code reads";
    case TableError::kWrongHeaderSize:
      return "the table says that its header does not take 256 bytes, as version 1 has it";
    case TableError::kWrongTotalSize:
      return "the table's size in bytes is not the one that its header states; it was cut off or padded";
    case TableError::kBadExtent:
      return "the table's width and height must be 1 to 32768";
    case TableError::kUnknownProjection:
      return "the table's projection must be 1 (lat-long), 2 (plane) or 3 (equal-area)";
    case TableError::kUnknownMethod:
      return "the table's method must be 1 (cutpoint with binary search)";
    case TableError::kUnknownOption:
      return "the table uses an option that version 1 does not have: layers must be 1; interpolation, flags "
             "and "
             "the reserved bytes 0";
    case TableError::kBadGuideSize:
      return "the table's guide sizes must be at least 1";
    case TableError::kMisalignedSection:
      return "a section of the table does not begin at a multiple of 256 bytes behind the header";
    case TableError::kSectionOutOfBounds:
      return "a section of the table ends behind the table's end";
  }
  return "unknown error";
}

namespace detail {

constexpr TableError check_section(const TableHeader& header, std::uint64_t offset, std::uint64_t bytes) {
  if (offset % kSectionAlignment != 0 || offset < kHeaderBytes) return TableError::kMisalignedSection;
  // No overflow: bytes is at most 2^15 * 2^32 * 2.
  if (offset > header.total_bytes || bytes > header.total_bytes - offset)
    return TableError::kSectionOutOfBounds;
  return TableError::kNone;
}

constexpr bool known_projection(Projection projection) {
  return projection == Projection::kLatLong || projection == Projection::kPlane ||
         projection == Projection::kEqualArea;
}

inline TableError check_sections(const TableHeader& header) {
  const std::uint64_t height = header.height;
  const std::uint64_t sections[4][2] = {
      {header.marginal_cdf_offset, height * sizeof(std::uint32_t)},
      {header.marginal_guide_offset, header.marginal_guide_size * sizeof(std::uint16_t)},
      {header.row_cdf_offset, height * header.width * sizeof(std::uint32_t)},
      {header.row_guide_offset, height * header.row_guide_size * sizeof(std::uint16_t)},
  };
  for (const auto& section : sections) {
    const TableError error = check_section(header, section[0], section[1]);
    if (error != TableError::kNone) return error;
  }
  return TableError::kNone;
}

inline bool known_options_only(const TableHeader& header) {
  if (header.layers != 1 || header.interpolation != 0 || header.flags != 0) return false;
  for (const unsigned char byte : header.reserved) {
    if (byte != 0) return false;
  }
  return true;
}

}  // namespace detail

/// Whether a table of `table_bytes` bytes that begins with `header` can be sampled without reading
/// outside of it, whatever the rest of it holds. The checksum is not looked at.
inline TableError check_header(const TableHeader& header, std::uint64_t table_bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return TableError::kNotATable;
  if (header.version != kFormatVersion) return TableError::kUnknownVersion;
  if (header.header_bytes != kHeaderBytes) return TableError::kWrongHeaderSize;
  if (header.total_bytes != table_bytes) return TableError::kWrongTotalSize;
  if (header.width < 1 || header.width > kMaxExtent) return TableError::kBadExtent;
  if (header.height < 1 || header.height > kMaxExtent) return TableError::kBadExtent;
  if (!detail::known_projection(header.projection)) return TableError::kUnknownProjection;
  if (header.method != Method::kCutpointBinary) return TableError::kUnknownMethod;
  if (!detail::known_options_only(header)) return TableError::kUnknownOption;
  if (header.marginal_guide_size < 1 || header.row_guide_size < 1) return TableError::kBadGuideSize;
  return detail::check_sections(header);
}

/// Reads the header from the table's first bytes, of which `available` are at `bytes` (256 suffice,
/// so that the table itself may lie on a device), and checks it.
inline TableError parse_header(const void* bytes, std::size_t available, std::uint64_t table_bytes,
                               TableHeader& header) {
  if (available < kHeaderBytes || table_bytes < kHeaderBytes) return TableError::kTruncatedHeader;
  std::memcpy(&header, bytes, kHeaderBytes);
  return check_header(header, table_bytes);
}

}  // namespace cumulus::sampling

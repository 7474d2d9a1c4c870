#pragma once

// The .cst layout of a sampling table: one contiguous little-endian blob, the same in a file, in
// host memory and in device memory. docs/operations/sampling_table_format.md has it byte by byte.
// C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cumulus/host_device.h"

namespace cumulus::sampling {

/// What the table's plane stands for.
enum class Projection : std::uint32_t {
  kLatLong = 1,    ///< The sphere: rows are polar angle from +Y, columns azimuth; pdf per steradian.
  kPlane = 2,      ///< The unit square; pdf per unit of area.
  kEqualArea = 3,  ///< The sphere, as cumulus/equal_area.h has it; square; pdf per steradian.
};

/// Whether positions are directions.
constexpr bool on_sphere(Projection projection) { return projection != Projection::kPlane; }

/// How a cell is found. All but kAlias map points monotonically, so that low-discrepancy points keep
/// their evenness, and all of these find the same cell.
enum class Method : std::uint32_t {
  kCutpointBinary = 1,  ///< A guide table, then binary search between two of its entries.
  kBinarySearch = 2,    ///< Binary search over all cells; no guide table.
  kBalancedForest =
      5,             ///< A guide table of first and last cells, and the implicit balanced tree between them.
  kRadixForest = 6,  ///< A guide table of first cells and, where many overlap, of roots of radix trees.
  kAlias = 9,        ///< Walker's alias table. Not monotone.
};

/// A method that tables had once: nothing draws from such a table any more, since another method is as fast
/// or faster wherever it would be chosen. Numbers are not given again.
struct RetiredMethod {
  std::uint32_t number;
  const char* name;  ///< As the command line had it.
};
inline constexpr RetiredMethod kRetiredMethods[] = {
    {3, "cutpoint-linear"}, {4, "linear-search"}, {7, "radix-forest-4"}, {8, "quaternary-tree"}};

/// Null where it is none.
constexpr const RetiredMethod* retired_method(std::uint32_t number) {
  for (const RetiredMethod& retired : kRetiredMethods) {
    if (retired.number == number) return &retired;
  }
  return nullptr;
}

/// What lies between the numbers of a map.
enum class Interpolation : std::uint32_t {
  kConstant = 0,  ///< Cells are texels, of constant density.
  /// Cells lie between the centres of texels; density is bilinear over each and continuous.
  kBilinear = 1,
};

/// Whether a method has a guide table; the others have guide sizes of 0.
CUMULUS_HOST_DEVICE constexpr bool has_guide(Method method) {
  return method == Method::kCutpointBinary || method == Method::kBalancedForest ||
         method == Method::kRadixForest;
}

inline constexpr char kMagic[8] = {'C', 'U', 'M', 'S', 'T', '\0', '\r', '\n'};
/// The newest version. A table is written with the lowest that has what it uses: 4 where it is a radix
/// forest, else 3 where it is kBilinear, else 2. Version 1 had kCutpointBinary alone, one layer and no nodes;
/// such tables are read, and so are the radix forests of versions 2 and 3.
inline constexpr std::uint32_t kFormatVersion = 4;
/// The first version that has bilinear tables.
inline constexpr std::uint32_t kBilinearVersion = 3;
CUMULUS_HOST_DEVICE constexpr std::uint32_t version_of(Method method, Interpolation interpolation) {
  if (method == Method::kRadixForest) return kFormatVersion;
  return interpolation == Interpolation::kConstant ? 2 : kBilinearVersion;
}
inline constexpr std::uint32_t kHeaderBytes = 256;
/// Every section begins at a multiple of this.
inline constexpr std::uint64_t kSectionAlignment = 256;
/// The largest width and height.
inline constexpr std::uint32_t kMaxExtent = 32768;
/// The largest width where the height is 1: a distribution in one dimension.
inline constexpr std::uint32_t kMaxLineExtent = std::uint32_t{1} << 22;
inline constexpr std::uint32_t kMaxLayers = 65536;
inline constexpr std::uint32_t kMaxGuideSize = std::uint32_t{1} << 24;

/// Cells of a distribution of at most this many are numbered in 15 bits, of a longer one in 30.
inline constexpr std::uint32_t kNarrowCells = 32768;

/// Bytes of one guide entry of a distribution over `cells` cells.
CUMULUS_HOST_DEVICE constexpr std::uint64_t guide_entry_bytes(Method method, std::uint32_t cells) {
  const std::uint64_t number = cells <= kNarrowCells ? 2 : 4;
  if (!has_guide(method)) return 0;
  if (method == Method::kBalancedForest) return 2 * number;
  return method == Method::kRadixForest ? 4 : number;
}

/// Bytes of the nodes of a distribution over `cells` cells.
CUMULUS_HOST_DEVICE constexpr std::uint64_t node_bytes(Method method, std::uint32_t cells) {
  switch (method) {
    case Method::kRadixForest:
      return std::uint64_t{cells} * (cells <= kNarrowCells ? 4 : 8);
    case Method::kAlias:
      return std::uint64_t{cells} * 8;
    default:
      return 0;
  }
}

/// The first 256 bytes of a table. It has `layers` layers of equal shape, each a marginal distribution
/// over its rows and a distribution over the columns of each row. Its cells are a map's texels or, of
/// kBilinear, what lies between their centres and its edges: one row and one column more (of a single row one
/// row).
///
/// Sections, of which each begins at its offset from the start of the table; those without bytes have
/// offset 0:
///   marginal_cdf    u32[layers][height]         lower bound of each row in [0, 2^32)
///   marginal_guide  entries[layers][marginal_guide_size]
///   row_cdf         u32[layers][height][width]  lower bound of each column within its row
///   row_guide       entries[layers][height][row_guide_size]
///   marginal_nodes  nodes[layers]
///   row_nodes       nodes[layers][height]
///   vertices        f32[layers][vertex_rows][width + 1]  of kBilinear: the weights at the cells' corners
///
/// A lower bound is the mass before the cell in units of 2^-32 of the whole. kEmptyTail stands for
/// a cell of no mass after the last cell that has any. Guide cell g holds the x with
/// floor(x * guide_size / 2^32) = g. docs/operations/sampling_table_format.md describes entries and nodes.
struct TableHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t header_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t layers = 0;
  Projection projection = Projection::kPlane;
  Method method = Method::kCutpointBinary;
  Interpolation interpolation = Interpolation::kConstant;
  std::uint32_t flags = 0;   ///< 0.
  std::uint32_t crc32c = 0;  ///< In a file, of all its bytes with this field zero; 0 in memory.
  std::uint32_t marginal_guide_size = 0;
  std::uint32_t row_guide_size = 0;
  std::uint64_t marginal_cdf_offset = 0;
  std::uint64_t marginal_guide_offset = 0;
  std::uint64_t row_cdf_offset = 0;
  std::uint64_t row_guide_offset = 0;
  std::uint64_t marginal_nodes_offset = 0;
  std::uint64_t row_nodes_offset = 0;
  std::uint64_t vertices_offset = 0;
  unsigned char reserved[136] = {};  ///< Zero.
};
static_assert(sizeof(TableHeader) == kHeaderBytes, "the header's size is part of the format");
static_assert(offsetof(TableHeader, total_bytes) == 16, "part of the format");
static_assert(offsetof(TableHeader, projection) == 36, "part of the format");
static_assert(offsetof(TableHeader, crc32c) == 52, "part of the format");
static_assert(offsetof(TableHeader, marginal_cdf_offset) == 64, "part of the format");
static_assert(offsetof(TableHeader, reserved) == 120, "part of the format");
static_assert(std::is_trivially_copyable<TableHeader>::value, "a header is read with memcpy");

/// The stored lower bound of a cell without mass after the last cell that has any. No cell with
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
  kRetiredMethod,
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
      return "the table's version is none of 1 to 4, which this code reads";
    case TableError::kWrongHeaderSize:
      return "the table says that its header does not take 256 bytes, as versions 1 to 4 have it";
    case TableError::kWrongTotalSize:
      return "the table's size in bytes is not the one that its header states; it was cut off or padded";
    case TableError::kBadExtent:
      return "the table's width and height must be 1 to 32768 (the width to 4194304 where the height is 1; "
             "one more where it is bilinear), its layers 1 to 65536";
    case TableError::kUnknownProjection:
      return "the table's projection must be 1 (lat-long), 2 (plane) or 3 (equal-area)";
    case TableError::kUnknownMethod:
      return "the table's method must be 1, 2, 5, 6 or 9, and 1 (cutpoint with binary search) in version 1";
    case TableError::kRetiredMethod:
      return "the table's method is 3 (cutpoint-linear), 4 (linear-search), 7 (radix-forest-4) or 8 "
             "(quaternary-tree), which nothing draws by any more; build the table again from its map, by any "
             "other method, and all but alias draw the same samples";
    case TableError::kUnknownOption:
      return "the table uses an option that its version does not have: flags and the reserved bytes must be "
             "0; "
             "interpolation 0, or 1 from version 3 on; in version 1 layers 1, and nodes missing";
    case TableError::kBadGuideSize:
      return "the table's guide sizes must be 1 to 16777216, or 0 where its method has no guide";
    case TableError::kMisalignedSection:
      return "a section of the table does not begin at a multiple of 256 bytes behind the header";
    case TableError::kSectionOutOfBounds:
      return "a section of the table ends behind the table's end";
  }
  return "unknown error";
}

namespace detail {

constexpr TableError check_section(const TableHeader& header, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return offset == 0 ? TableError::kNone : TableError::kMisalignedSection;
  if (offset % kSectionAlignment != 0 || offset < kHeaderBytes) return TableError::kMisalignedSection;
  if (offset > header.total_bytes || bytes > header.total_bytes - offset)
    return TableError::kSectionOutOfBounds;
  return TableError::kNone;
}

}  // namespace detail

/// Bytes of each section. Of a header whose extents and guide sizes are in range none overflows: the
/// longest has less than 2^16 layers * 2^15 rows * 2^24 entries * 8 bytes.
struct SectionBytes {
  std::uint64_t marginal_cdf;
  std::uint64_t marginal_guide;
  std::uint64_t row_cdf;
  std::uint64_t row_guide;
  std::uint64_t marginal_nodes;
  std::uint64_t row_nodes;
  std::uint64_t vertices;
};

/// Rows of vertices of a layer of a kBilinear table: of a single row of cells one, for both of its edges.
CUMULUS_HOST_DEVICE constexpr std::uint32_t vertex_rows(const TableHeader& header) {
  return header.height == 1 ? 1 : header.height + 1;
}

constexpr SectionBytes section_bytes(const TableHeader& header) {
  const std::uint64_t layers = header.layers;
  const std::uint64_t rows = layers * header.height;
  return {rows * sizeof(std::uint32_t),
          layers * header.marginal_guide_size * guide_entry_bytes(header.method, header.height),
          rows * header.width * sizeof(std::uint32_t),
          rows * header.row_guide_size * guide_entry_bytes(header.method, header.width),
          layers * node_bytes(header.method, header.height),
          rows * node_bytes(header.method, header.width),
          header.interpolation == Interpolation::kBilinear
              ? layers * vertex_rows(header) * (std::uint64_t{header.width} + 1) * sizeof(float)
              : 0};
}

namespace detail {

constexpr bool known_projection(Projection projection) {
  return projection == Projection::kLatLong || projection == Projection::kPlane ||
         projection == Projection::kEqualArea;
}

constexpr TableError check_sections(const TableHeader& header) {
  const SectionBytes bytes = section_bytes(header);
  const std::uint64_t sections[7][2] = {
      {header.marginal_cdf_offset, bytes.marginal_cdf},
      {header.marginal_guide_offset, bytes.marginal_guide},
      {header.row_cdf_offset, bytes.row_cdf},
      {header.row_guide_offset, bytes.row_guide},
      {header.marginal_nodes_offset, bytes.marginal_nodes},
      {header.row_nodes_offset, bytes.row_nodes},
      {header.vertices_offset, bytes.vertices},
  };
  for (const auto& section : sections) {
    const TableError error = check_section(header, section[0], section[1]);
    if (error != TableError::kNone) return error;
  }
  return TableError::kNone;
}

constexpr bool known_options_only(const TableHeader& header) {
  if (header.interpolation != Interpolation::kConstant &&
      (header.interpolation != Interpolation::kBilinear || header.version < kBilinearVersion)) {
    return false;
  }
  if (header.interpolation == Interpolation::kConstant && header.vertices_offset != 0) return false;
  if (header.flags != 0 || (header.version == 1 && header.layers != 1)) return false;
  for (const unsigned char byte : header.reserved) {
    if (byte != 0) return false;
  }
  return true;
}

constexpr bool known_method(const TableHeader& header) {
  switch (header.method) {
    case Method::kCutpointBinary:
      return true;
    case Method::kBinarySearch:
    case Method::kBalancedForest:
    case Method::kRadixForest:
    case Method::kAlias:
      return header.version > 1;
  }
  return false;
}

constexpr bool has_retired_method(const TableHeader& header) {
  return header.version > 1 && retired_method(static_cast<std::uint32_t>(header.method)) != nullptr;
}

constexpr bool extents_in_range(const TableHeader& header) {
  const std::uint32_t between = header.interpolation == Interpolation::kBilinear ? 1 : 0;
  const std::uint32_t widest =
      (header.version > 1 && header.height == 1 ? kMaxLineExtent : kMaxExtent) + between;
  return header.width >= 1 + between && header.width <= widest && header.height >= 1 &&
         header.height <= kMaxExtent + between && header.layers >= 1 && header.layers <= kMaxLayers;
}

constexpr bool guide_size_in_range(const TableHeader& header, std::uint32_t size) {
  return has_guide(header.method) ? size >= 1 && size <= kMaxGuideSize : size == 0;
}

}  // namespace detail

/// Whether a table of `table_bytes` bytes that begins with `header` can be sampled without reading
/// outside of it, whatever the rest of it holds. The checksum is not looked at.
inline TableError check_header(const TableHeader& header, std::uint64_t table_bytes) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return TableError::kNotATable;
  if (header.version < 1 || header.version > kFormatVersion) return TableError::kUnknownVersion;
  if (header.header_bytes != kHeaderBytes) return TableError::kWrongHeaderSize;
  if (header.total_bytes != table_bytes) return TableError::kWrongTotalSize;
  if (!detail::extents_in_range(header)) return TableError::kBadExtent;
  if (!detail::known_projection(header.projection)) return TableError::kUnknownProjection;
  if (detail::has_retired_method(header)) return TableError::kRetiredMethod;
  if (!detail::known_method(header)) return TableError::kUnknownMethod;
  if (!detail::known_options_only(header)) return TableError::kUnknownOption;
  if (!detail::guide_size_in_range(header, header.marginal_guide_size) ||
      !detail::guide_size_in_range(header, header.row_guide_size)) {
    return TableError::kBadGuideSize;
  }
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

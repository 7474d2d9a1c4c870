#pragma once

#include <cstddef>
#include <cstdint>

namespace cumulus::run_length {

/// Warps of a block of the decoder.
inline constexpr int kTileWarps = 8;

/// Small arrays are encoded by one launch: of a block, whose threads have up to kSmallRows elements each; or,
/// where there are clusters, of up to kSmallClusters clusters of kSmallBlocks blocks, whose threads have up
/// to kClusterRows.
inline constexpr int kSmallThreads = 1024;
inline constexpr int kSmallRows = 8;
inline constexpr int kSmallBlocks = 8;
inline constexpr int kSmallClusters = 8;
inline constexpr int kClusterRows = 2;
inline constexpr int kClusterArchitecture = 90;
/// Larger elements than these would not fit into the registers of a thread that has kClusterRows.
inline constexpr int kMaxClusterRowsBytes = 4;
/// More elements than this are worth the blocks of a cluster.
inline constexpr std::int64_t kOneBlockElements = 2 * kSmallThreads;

/// Warps of a block of the CUDA encoder that have chunks: as many as there is shared memory for. Two more,
/// the publisher and the look-back warp, exchange with other blocks.
inline constexpr int kMinEncodeWarps = 3;
inline constexpr int kMaxEncodeWarps = 22;
inline constexpr int kCarryWarps = 2;
/// Chunks that may wait for their carry-in as they are, while a warp compares the next ones. Where elements
/// are small, more warps are worth more than another chunk for each.
constexpr int max_held_chunks(int element_bytes) { return element_bytes < 4 ? 1 : 2; }

/// Or, of chunks with few runs, a list of these; and the most runs of such a list.
inline constexpr int kQueuedChunks = 4;
inline constexpr int kMaxQueuedRuns = 96;

/// Elements that one warp of the CUDA encoder takes at once, 2 to 4 KiB of them: a multiple of 32; of those
/// that are no words at most 1024.
constexpr int encode_warp_elements(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return 2048;
    case 2:
    case 3:
    case 4:
      return 1024;
    case 6:
    case 8:
      return 512;
    default:
      return 256;
  }
}

/// Shared memory of a block of the CUDA encoder, without that of its warps; and of each warp: a chunk and the
/// 16 bytes before it for each that is held, and for two more; and a 16-bit number for each element.
inline constexpr std::size_t kEncodeBlockBytes = 2960;
constexpr std::size_t encode_warp_bytes(int element_bytes) {
  const auto elements = static_cast<std::size_t>(encode_warp_elements(element_bytes));
  const auto chunks = static_cast<std::size_t>(max_held_chunks(element_bytes)) + 2;
  return chunks * (16 + elements * static_cast<std::size_t>(element_bytes)) + elements * 2;
}

/// Where at most one element in this many is a head, each lane lists those among its own elements.
inline constexpr int kFewHeadsRatio = 6;

/// Elements that one block of the CUDA decoder writes: 64 to 128 KiB of them. A multiple of 8192.
constexpr int decode_tile_elements(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return 65536;
    case 2:
    case 3:
      return 32768;
    case 4:
    case 6:
      return 16384;
    default:
      return 8192;
  }
}

/// Where at least one of so many elements of a byte begins a run, the CUDA decoder gathers them four at a
/// time.
inline constexpr int kManyHeadsRatio = 24;

/// Runs of a granule: what one warp of the decoder scans at once. Where each begins is kept in scratch.
inline constexpr int kGranuleRuns = 256;
/// Of granules without empty runs, and with at most so many elements, a bit for each element is kept, the
/// heads set: so many bits, less the most that the first can lie behind a multiple of 32.
inline constexpr int kFlagWords = 32;
inline constexpr int kShortGranuleElements = 32 * kFlagWords - 31;
/// Granules whose lengths one block adds up: one per lane of a warp.
inline constexpr int kBlockGranules = 32;
/// So few blocks are scanned by a warp of each tile rather than by a kernel.
inline constexpr std::int64_t kFewBlocks = 32;

/// The CPU encoder takes the array in pieces of at most this many bytes: what follows from a piece's heads is
/// looked up in it while it is in the L2 cache of its core.
inline constexpr std::int64_t kPieceBytes = 128 * 1024;
/// Elements of a piece: a multiple of 64.
constexpr std::int64_t piece_elements(int element_bytes) { return kPieceBytes / element_bytes / 64 * 64; }

/// Runs of a granule of the CPU decoder, and granules that a task checks.
inline constexpr std::int64_t kCpuGranuleRuns = 1024;
inline constexpr std::int64_t kCheckedGranules = 32;
/// Bytes of the array that a task writes.
inline constexpr std::int64_t kCpuDecodeBytes = 256 * 1024;
/// The CPU decoder writes runs in blocks of so many bytes, of which one has no more than so many.
inline constexpr std::size_t kRunBlockBytes = 64;
inline constexpr std::int64_t kMaxBlocks = 16;
/// An array of at least so many bytes does not stay in the caches: the CPU decoder writes it past them, in
/// pieces of no more than so many.
inline constexpr std::int64_t kStreamedBytes = 24 << 20;
inline constexpr std::int64_t kStreamedPieceBytes = 4096;
/// A line of the caches.
inline constexpr std::int64_t kLineBytes = 64;
/// Runs whose lengths are looked through at once: where each is one element, the symbols are copied.
inline constexpr std::int64_t kGroupRuns = 64;

}  // namespace cumulus::run_length

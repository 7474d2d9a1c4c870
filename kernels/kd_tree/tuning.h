#pragma once

#include <cstddef>
#include <cstdint>

// What choosers and kernels of KD-trees are tuned by. The figures behind them: docs/experiments/kd_tree.md.
namespace cumulus::kd_tree {

// Builds on a GPU: levels.

/// Segments that are larger than a block can hold are split level by level, in tiles of kTileThreads *
/// kTileItems points.
inline constexpr int kTileThreads = 256;
inline constexpr int kTileItems = 16;
inline constexpr int kTilePoints = kTileThreads * kTileItems;
/// Bits that one pass of the radix selection decides.
inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;

// Builds on a GPU: blocks.

/// A block takes a segment down to its leaves in shared memory, up to kMaxBlockItems points a thread.
inline constexpr int kMaxBlockItems = 8;
inline constexpr int kMinBlockThreads = 64;
inline constexpr int kMaxBlockThreads = 1024;
/// Of shared memory: what every supported GPU has.
inline constexpr std::size_t kMaxBlockBytes = 64 * 1024;

// Builds from samples, on a GPU.

/// Below this the exact build is as fast.
inline constexpr std::int64_t kMinSampledPoints = std::int64_t{1} << 17;
inline constexpr int kMaxStepLevels = 8;
/// Of the first step, for each of its parts, and at most: what a block has room for.
inline constexpr int kPartSamples = 128;
inline constexpr int kMaxFirstSamples = 9600;
/// Of the second step, in a part of the first. At 2^-4 of the points a bucket has 20 to 40 of them.
inline constexpr unsigned kMaxSampleCapacity = 9720;
inline constexpr int kMinSampleShift = 4;
inline constexpr int kMaxSampleShift = 8;
inline constexpr int kSampleThreads = 1024;
inline constexpr int kSampleItems = 10;
/// Rooms are so many standard deviations larger than expected.
inline constexpr double kRoomDeviations = 5.5;
/// Most buckets are less than so many times the mean.
inline constexpr double kSmallBucket = 1.4;

/// Blocks that take buckets to their leaves: of `threads` with `items` points each at most. Few buckets are
/// larger than `kSmallBucket`, and get a large block.
struct BucketBlocks {
  int threads;
  int items;
  int large_threads;
  int large_items;
  int min_levels;           // a leaf has a warp of a large block at most
  int max_levels;           // a thread for each
  std::int64_t max_points;  // on average
};
inline constexpr BucketBlocks kNarrowBuckets{128, 7, 256, 9, 3, 7, 628};
/// Where there are as many buckets as two steps can make.
inline constexpr BucketBlocks kWideBuckets{256, 9, 512, 13, 4, 8, 1600};
inline constexpr std::int64_t kMinBucketPoints = 300;

// Queries on a GPU.

inline constexpr int kSearchThreads = 128;
/// Below this, neighbouring queries are too far apart for their threads to go the same way.
inline constexpr std::int64_t kMinSortedQueries = 1024;
/// More nodes than this for each query cost more to prepare than sorting gains.
inline constexpr std::int64_t kMaxNodesPerQuery = 64;
inline constexpr int kMaxSortedDimensions = 8;
/// A split has two bits for its axis.
inline constexpr int kMaxSplitDimensions = 4;
/// Sorted queries: so many neighbours are kept in registers, more in a heap in shared memory.
inline constexpr int kRegisterListCapacity = 8;
inline constexpr int kRegisterListThreads = 128;
/// Of a multiprocessor, in FLOAT32: 56 registers a thread beat 72, 64 and 48.
inline constexpr int kRegisterListWarps = 36;
inline constexpr int kHeapListThreads = 32;
inline constexpr int kClosestThreads = 128;
/// Numbers of a warp's lists lie so far apart in shared memory, without bank conflicts along or across.
inline constexpr unsigned kColumnPitch = 33;
/// Unsorted queries: lists of so many places, or of kMaxNeighbors.
inline constexpr int kSmallListCapacity = 8;
inline constexpr int kMediumListCapacity = 32;
/// A call's first slice has so many queries, where leaves have at most kUsualLeaf points: some milliseconds.
inline constexpr std::int64_t kFirstSliceSorted = std::int64_t{1} << 21;
inline constexpr std::int64_t kFirstSlicePerThread = std::int64_t{1} << 19;
inline constexpr std::int64_t kFirstSliceWithin = std::int64_t{1} << 17;  // each may find all points
inline constexpr std::int64_t kUsualLeaf = 128;
/// Offsets of lists are summed in tiles.
inline constexpr int kAccumulationThreads = 256;
inline constexpr int kAccumulationItems = 8;  // a thread
inline constexpr int kAccumulationTile = kAccumulationThreads * kAccumulationItems;

// The CPU.

/// Subtrees of so many points, which 16 bits number, are built at once, by one thread; where there are
/// several threads, each is to have several subtrees.
inline constexpr std::size_t kMaxSubtreePoints = 32768;
inline constexpr std::size_t kMinSubtreePoints = 2048;
inline constexpr int kSubtreesPerThread = 4;
/// In more dimensions it costs more to sort along all of them than to select.
inline constexpr int kMaxSubtreeDimensions = 8;
/// Queries are put in Morton order where the tree is larger than a core's caches.
inline constexpr std::int64_t kMinOrderedPoints = 1 << 16;
inline constexpr std::int64_t kMinOrderedQueries = 1 << 12;

}  // namespace cumulus::kd_tree

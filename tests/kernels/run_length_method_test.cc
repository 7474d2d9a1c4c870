// How runs are encoded and decoded on which GPU: of numbers alone, without a GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/run_length/method.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/gpus.h"

namespace cumulus::run_length {
namespace {

constexpr std::size_t kKiB = 1024;

using testing::kH200;
using testing::kRtx4090;
constexpr DeviceNumbers kSmall = {.architecture = 75,
                                  .multiprocessors = 20,
                                  .multiprocessor_threads = 1024,
                                  .multiprocessor_shared_bytes = 64 * kKiB,
                                  .block_shared_bytes = 64 * kKiB,
                                  .l2_bytes = 2 * kKiB * kKiB};

constexpr std::int64_t kMax = std::int64_t{1} << 40;

EncodePlan encode_plan(int element_bytes, std::int64_t elements, const DeviceNumbers& device) {
  return choose_encode({.format = {element_bytes}, .elements = elements, .max_runs = elements}, device);
}

/// What docs/operations/run_length.md says of small arrays.
TEST(RunLengthMethod, EncodesSmallArraysByOneLaunch) {
  struct Row {
    std::int64_t elements;
    int blocks[3];  // on the three GPUs; 0: in tiles
    int rows[3];
  };
  const Row rows[] = {
      {1, {1, 1, 1}, {1, 1, 1}},      {1024, {1, 1, 1}, {1, 1, 1}},   {2048, {1, 1, 1}, {2, 2, 2}},
      {2049, {8, 1, 1}, {1, 3, 3}},   {4096, {8, 1, 1}, {1, 4, 4}},   {8192, {8, 1, 1}, {1, 8, 8}},
      {8193, {16, 0, 0}, {1, 0, 0}},  {32768, {32, 0, 0}, {1, 0, 0}}, {32769, {40, 0, 0}, {1, 0, 0}},
      {65536, {64, 0, 0}, {1, 0, 0}},
  };
  const DeviceNumbers* devices[] = {&kH200, &kRtx4090, &kSmall};
  for (const Row& row : rows) {
    for (int d = 0; d < 3; ++d) {
      for (const int element_bytes : testing::kRunElementBytes) {
        SCOPED_TRACE(std::to_string(row.elements) + " elements, GPU " + std::to_string(d));
        const EncodePlan plan = encode_plan(element_bytes, row.elements, *devices[d]);
        const auto* small = std::get_if<EncodeSmallPlan>(&plan);
        ASSERT_EQ(small != nullptr, row.blocks[d] != 0);
        if (small == nullptr) continue;
        EXPECT_EQ(small->blocks, row.blocks[d]);
        EXPECT_EQ(small->rows, row.rows[d]);
        EXPECT_GE(std::int64_t{small->blocks} * small->rows * kSmallThreads, row.elements);
        EXPECT_EQ(scratch_bytes(plan), 256u);
      }
    }
  }
}

/// Beyond 2^16 elements threads have two, where these fit into registers.
TEST(RunLengthMethod, EncodesTwiceAsManySmallElementsByOneLaunch) {
  for (const int element_bytes : testing::kRunElementBytes) {
    for (const std::int64_t elements : {65537, 131072, 131073}) {
      SCOPED_TRACE(std::to_string(elements) + " elements of " + std::to_string(element_bytes) + " bytes");
      const EncodePlan plan = encode_plan(element_bytes, elements, kH200);
      const auto* small = std::get_if<EncodeSmallPlan>(&plan);
      ASSERT_EQ(small != nullptr, elements <= 131072 && element_bytes <= 4);
      if (small == nullptr) continue;
      EXPECT_EQ(small->rows, 2);
      EXPECT_EQ(small->blocks, elements == 131072 ? 64 : 40);
    }
    EXPECT_TRUE(std::holds_alternative<EncodeTilesPlan>(encode_plan(element_bytes, 65537, kRtx4090)));
    EXPECT_TRUE(
        std::holds_alternative<EncodeTilesPlan>(encode_plan(element_bytes, std::int64_t{1} << 32, kH200)));
  }
}

struct EncodeCase {
  int element_bytes;
  std::int64_t elements;
  int warps[3];           // on the three GPUs
  std::int64_t tiles[3];  // likewise
};

TEST(RunLengthMethod, EncodesByAsManyWarpsAsThereIsSharedMemoryFor) {
  const EncodeCase cases[] = {
      {1, 1000000, {22, 9, 6}, {23, 55, 82}},      {1, 268435456, {22, 9, 6}, {5958, 14564, 21846}},
      {2, 1000000, {22, 11, 7}, {45, 89, 140}},    {2, 268435456, {22, 11, 7}, {11916, 23832, 37450}},
      {3, 1000000, {20, 8, 5}, {49, 123, 196}},    {3, 268435456, {20, 8, 5}, {13108, 32768, 52429}},
      {4, 1000000, {12, 5, 3}, {82, 196, 326}},    {4, 268435456, {12, 5, 3}, {21846, 52429, 87382}},
      {6, 1000000, {17, 7, 4}, {115, 280, 489}},   {6, 268435456, {17, 7, 4}, {30841, 74899, 131072}},
      {8, 1000000, {13, 5, 3}, {151, 391, 652}},   {8, 268435456, {13, 5, 3}, {40330, 104858, 174763}},
      {12, 1000000, {17, 7, 4}, {230, 559, 977}},  {12, 268435456, {17, 7, 4}, {61681, 149797, 262144}},
      {16, 1000000, {13, 5, 3}, {301, 782, 1303}}, {16, 268435456, {13, 5, 3}, {80660, 209716, 349526}},
  };
  const DeviceNumbers* devices[] = {&kH200, &kRtx4090, &kSmall};
  for (const EncodeCase& c : cases) {
    for (int d = 0; d < 3; ++d) {
      SCOPED_TRACE(std::to_string(c.elements) + " of " + std::to_string(c.element_bytes) + " bytes, GPU " +
                   std::to_string(d));
      const auto plan = std::get<EncodeTilesPlan>(encode_plan(c.element_bytes, c.elements, *devices[d]));
      EXPECT_EQ(plan.warps, c.warps[d]);
      EXPECT_EQ(plan.tiles, c.tiles[d]);
      EXPECT_EQ(plan.threads(), 32 * (c.warps[d] + 2));
      EXPECT_LE(plan.shared_bytes, devices[d]->block_shared_bytes);
      // A block for the report and 16 bytes for each tile, in whole blocks.
      const std::size_t blocks = 1 + (static_cast<std::size_t>(c.tiles[d]) * 16 + 255) / 256;
      EXPECT_EQ(plan.scratch_bytes(), 256 * blocks);
    }
  }
}

TEST(RunLengthMethod, EncodesAnyArrayOnAnyDevice) {
  for (const std::size_t shared : {std::size_t{0}, 1 * kKiB, 48 * kKiB, 64 * kKiB, 227 * kKiB, 1024 * kKiB}) {
    for (const int element_bytes : testing::kRunElementBytes) {
      for (const std::int64_t elements : {std::int64_t{65537}, std::int64_t{123456}, kMax}) {
        const auto plan =
            std::get<EncodeTilesPlan>(encode_plan(element_bytes, elements, {.block_shared_bytes = shared}));
        EXPECT_GE(plan.warps, kMinEncodeWarps);
        EXPECT_LE(plan.warps, kMaxEncodeWarps);
        const std::int64_t tile = std::int64_t{plan.warps} * encode_warp_elements(element_bytes);
        EXPECT_GE(plan.tiles * tile, elements);
        EXPECT_LT((plan.tiles - 1) * tile, elements);
      }
    }
  }
}

std::string name_of(const CheckPlan& /*plan*/) { return "check"; }
std::string name_of(const FewBlocksPlan& /*plan*/) { return "few blocks"; }
std::string name_of(const GranulesPlan& plan) { return plan.mostly_short ? "short granules" : "granules"; }

struct DecodeCase {
  int element_bytes;
  std::int64_t runs;
  std::int64_t max_elements;
  const char* method;
};

/// Decoders take no number of the device.
TEST(RunLengthMethod, DecodesByRunsAndElements) {
  const DecodeCase cases[] = {
      {1, 1, 0, "check"},
      {4, 1000000, 0, "check"},
      {16, 1, 0, "check"},
      {1, 1, 1, "short granules"},
      {1, 1, 3, "short granules"},
      {1, 1, 4, "few blocks"},
      {4, 1, 1 << 28, "few blocks"},
      {4, 256, 1023, "short granules"},
      {4, 256, 1024, "few blocks"},
      {1, 1000, 1000, "short granules"},
      {1, 1000, 7000, "few blocks"},
      {2, 1000, 64000, "few blocks"},
      {3, 1000, 4096000, "few blocks"},
      {1, 262144, 1048575, "short granules"},
      {1, 262144, 1048576, "few blocks"},
      {1, 262145, 1048576, "short granules"},
      {1, 262145, 1048580, "granules"},
      {4, 262144, 1 << 28, "few blocks"},
      {4, 262145, 1 << 28, "granules"},
      {8, 262144, 1 << 26, "few blocks"},
      {8, 262145, 1 << 26, "granules"},
      {12, 262144, 1 << 26, "few blocks"},
      {12, 262145, 1 << 26, "granules"},
      {1, 1 << 28, 1 << 28, "short granules"},
      {1, (1 << 28) / 7, 1 << 28, "granules"},
      {1, (1 << 28) / 64, 1 << 28, "granules"},
      {1, (1 << 28) / 4096, 1 << 28, "few blocks"},
      {2, 1 << 28, 1 << 28, "short granules"},
      {2, (1 << 28) / 64, 1 << 28, "granules"},
      {4, 1 << 28, 1 << 28, "short granules"},
      {4, (1 << 28) / 2, 1 << 28, "short granules"},
      {4, (1 << 28) / 7, 1 << 28, "granules"},
      {4, (1 << 28) / 64, 1 << 28, "granules"},
      {4, (1 << 28) / 4096, 1 << 28, "few blocks"},
      {16, 1 << 24, 1 << 24, "short granules"},
      {16, 1 << 20, 1 << 24, "granules"},
      {6, 1 << 20, 1 << 22, "granules"},
      {6, 1 << 20, (1 << 22) - 1, "short granules"},
  };
  for (const DecodeCase& c : cases) {
    SCOPED_TRACE(std::to_string(c.runs) + " runs, " + std::to_string(c.max_elements) + " of " +
                 std::to_string(c.element_bytes) + " bytes");
    const DecodePlan plan =
        choose_decode({.format = {c.element_bytes}, .runs = c.runs, .max_elements = c.max_elements});
    EXPECT_EQ(std::visit([](const auto& of_method) { return name_of(of_method); }, plan), c.method);
    const DecodeGrid& grid = grid_of(plan);
    EXPECT_EQ(grid.granules, (c.runs + 255) / 256);
    EXPECT_EQ(grid.blocks, (c.runs + 8191) / 8192);
    EXPECT_GE(grid.tiles * decode_tile_elements(c.element_bytes), c.max_elements);
  }
}

/// Where tiles find their runs themselves, nothing is kept for them.
TEST(RunLengthMethod, DecodersTakeTheScratchMemoryOfTheChosenMethod) {
  const auto bytes = [](std::int64_t runs, std::int64_t max_elements) {
    return scratch_bytes(choose_decode({.format = {4}, .runs = runs, .max_elements = max_elements}));
  };
  // 1024 granules of 128 bytes of flags and 8 of a sum, 32 blocks of granules.
  constexpr std::size_t kSums = 256 + 1024 * 128 + 1024 * 8 + 256;
  EXPECT_EQ(bytes(262144, 0), kSums);
  EXPECT_EQ(bytes(262144, 1 << 28), kSums);
  // Tiles of 16384 elements, 8 bytes each.
  EXPECT_EQ(bytes(262144, 1 << 19), kSums + 256);
  EXPECT_EQ(bytes(524288, 1 << 28), 256 + 2048 * 128 + 2048 * 8 + 512 + 16384 * 8);
}

}  // namespace
}  // namespace cumulus::run_length

// Which method builds a table on which GPU: of numbers alone, without a GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/summed_area_table/method.h"
#include "tests/support/gpus.h"

namespace cumulus::summed_area_table {
namespace {

constexpr std::size_t kKiB = 1024;

using testing::kH200;
using testing::kRtx4090;
constexpr DeviceNumbers kSmall = {.architecture = 75,
                                  .multiprocessors = 20,
                                  .multiprocessor_threads = 1024,
                                  .multiprocessor_shared_bytes = 64 * kKiB,
                                  .block_shared_bytes = 48 * kKiB,
                                  .l2_bytes = 2 * kKiB * kKiB};

std::string name_of(const LookBackPlan& plan) {
  std::string name = "look-back";
  if (plan.terms == Terms::kValuesAndSquares) name += ", squares";
  if (plan.terms == Terms::kOffsets) name += ", offsets";
  if (plan.layout == Layout::kPlanes) name += ", planes of " + std::to_string(plan.channels);
  if (plan.layout == Layout::kStrided) name += ", strided";
  return name;
}
std::string name_of(const ResidentPlan& plan) {
  return std::string(plan.tall() ? "tall" : "low") + " tiles" + (plan.whole ? ", whole" : "");
}
std::string name_of(const StripsPlan& plan) {
  return "strips of " + std::to_string(plan.form.columns) + " by " +
         std::to_string(plan.form.blocks_per_strip);
}
std::string name_of(const Plan& plan) {
  return std::visit([](const auto& of_method) { return name_of(of_method); }, plan);
}

std::string text_of(const BuildShape& shape) {
  return std::to_string(shape.width) + " columns, " + std::to_string(shape.height) + " rows, " +
         std::to_string(shape.channels) + " channels, " + std::to_string(shape.planes) + " images of " +
         std::to_string(element_bytes(shape.types.image)) + " bytes into sums of " +
         std::to_string(element_bytes(shape.types.sum));
}

enum Extras : unsigned { kNothing = 0, kExclusive = 1, kSquares = 2, kOffsets = 4, kUnaligned = 8 };

struct Case {
  ElementPair types;
  std::int64_t width, height;
  std::int64_t channels;
  std::int64_t planes;
  unsigned extras;
  const char* on_h200;
  const char* on_desktop;
  const char* on_small;

  BuildShape shape() const {
    return {.types = types,
            .height = height,
            .width = width,
            .channels = channels,
            .planes = planes,
            .exclusive = (extras & kExclusive) != 0,
            .squares = (extras & kSquares) != 0,
            .offsets = (extras & kOffsets) != 0,
            .aligned = (extras & kUnaligned) == 0};
  }
};

void expect_choices(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(text_of(one.shape()));
    EXPECT_EQ(name_of(choose(one.shape(), kH200)), one.on_h200);
    EXPECT_EQ(name_of(choose(one.shape(), kRtx4090)), one.on_desktop);
    EXPECT_EQ(name_of(choose(one.shape(), kSmall)), one.on_small);
  }
}

constexpr ElementPair kF32F32 = kElementPair<float, float>;
constexpr ElementPair kF32F64 = kElementPair<float, double>;
constexpr ElementPair kF16F32 = kElementPair<Float16, float>;
constexpr ElementPair kF16F64 = kElementPair<Float16, double>;
constexpr ElementPair kF64F64 = kElementPair<double, double>;
constexpr ElementPair kU8U32 = kElementPair<std::uint8_t, std::uint32_t>;
constexpr ElementPair kU8U64 = kElementPair<std::uint8_t, std::uint64_t>;
constexpr ElementPair kU16U32 = kElementPair<std::uint16_t, std::uint32_t>;
constexpr ElementPair kU16U64 = kElementPair<std::uint16_t, std::uint64_t>;
constexpr ElementPair kU32U64 = kElementPair<std::uint32_t, std::uint64_t>;
constexpr ElementPair kI32I64 = kElementPair<std::int32_t, std::int64_t>;

TEST(SummedAreaTableMethod, OfGrayFloats) {
  expect_choices({
      {kF32F32, 512, 256, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "low tiles, whole"},
      {kF32F32, 1024, 512, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "tall tiles, whole"},
      {kF32F32, 1024, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF32F32, 1000, 1000, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F32, 1920, 1080, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F32, 2048, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF32F32, 2048, 2048, 1, 1, kNothing, "tall tiles, whole", "tall tiles, whole", "look-back"},
      {kF32F32, 1900, 2000, 1, 1, kNothing, "tall tiles", "tall tiles", "look-back"},
      {kF32F32, 2000, 3000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 2560, 2560, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 3840, 2160, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kF32F32, 4096, 2048, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kF32F32, 4096, 4096, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kF32F32, 8192, 1000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 8192, 4096, 1, 1, kNothing, "strips of 128 by 2", "look-back", "look-back"},
      {kF32F32, 8192, 8192, 1, 1, kNothing, "strips of 128 by 2", "look-back", "look-back"},
      {kF32F32, 16384, 8192, 1, 1, kNothing, "strips of 128 by 1", "look-back", "look-back"},
      {kF32F32, 16384, 16384, 1, 1, kNothing, "strips of 128 by 1", "look-back", "look-back"},
      {kF32F32, 20000, 4000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 4096, 4096, 1, 1, kUnaligned, "look-back", "look-back", "look-back"},
      {kF32F32, 2048, 2048, 1, 1, kUnaligned, "tall tiles", "tall tiles", "look-back"},
      {kF32F32, 1, 1, 1, 1, kNothing, "low tiles", "low tiles", "low tiles"},
      {kF32F32, 300000, 1, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 1, 300000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F32, 16384, 1, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F32, 1, 4096, 1, 1, kNothing, "low tiles", "low tiles", "tall tiles"},
  });
}

TEST(SummedAreaTableMethod, OfGrayFloatsInDoubles) {
  expect_choices({
      {kF32F64, 512, 256, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "low tiles, whole"},
      {kF32F64, 1024, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF32F64, 1920, 1080, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F64, 2048, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF32F64, 2048, 2048, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F64, 4096, 4096, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F64, 16384, 8192, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF32F64, 1, 8000, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F64, 16896, 1, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF32F64, 33792, 1, 1, 1, kNothing, "low tiles", "look-back", "look-back"},
  });
}

TEST(SummedAreaTableMethod, OfGrayBytes) {
  expect_choices({
      {kU8U32, 512, 256, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "low tiles, whole"},
      {kU8U32, 1024, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kU8U32, 2048, 2048, 1, 1, kNothing, "tall tiles, whole", "tall tiles, whole", "look-back"},
      {kU8U32, 2000, 3000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU8U32, 3072, 2048, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU8U32, 3200, 2048, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kU8U32, 3840, 2160, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kU8U32, 4096, 4096, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kU8U32, 4095, 4096, 1, 1, kNothing, "strips of 64 by 2", "look-back", "look-back"},
      {kU8U32, 8192, 4096, 1, 1, kNothing, "strips of 128 by 2", "look-back", "look-back"},
      {kU8U32, 8192, 8192, 1, 1, kNothing, "strips of 128 by 2", "look-back", "look-back"},
      {kU8U32, 12288, 8192, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU8U32, 16384, 8192, 1, 1, kNothing, "strips of 128 by 1", "look-back", "look-back"},
      {kU8U32, 1, 1, 1, 1, kNothing, "low tiles", "low tiles", "low tiles"},
      {kU8U32, 300000, 1, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU8U32, 1, 300000, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU8U32, 4096, 640, 1, 1, kNothing, "tall tiles, whole", "tall tiles, whole", "look-back"},
      {kU8U32, 2048, 640, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kU8U32, 4096, 4096, 1, 1, kUnaligned, "look-back", "look-back", "look-back"},
      {kU8U64, 1024, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kU8U64, 2048, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kU8U64, 4096, 4096, 1, 1, kNothing, "look-back", "look-back", "look-back"},
  });
}

TEST(SummedAreaTableMethod, OfGrayImagesOfOtherTypes) {
  expect_choices({
      {kF16F32, 1024, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF16F32, 1920, 1080, 1, 1, kNothing, "low tiles", "low tiles", "look-back"},
      {kF16F32, 2048, 2048, 1, 1, kNothing, "tall tiles, whole", "tall tiles, whole", "look-back"},
      {kF16F32, 4096, 2048, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kF16F64, 2048, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kF16F64, 8192, 4096, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU16U32, 1024, 512, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "tall tiles, whole"},
      {kU16U64, 2048, 1024, 1, 1, kNothing, "low tiles, whole", "low tiles, whole", "look-back"},
      {kU16U64, 4096, 4096, 1, 1, kNothing, "look-back", "look-back", "look-back"},
      {kU32U64, 4096, 4096, 1, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
      {kI32I64, 1024, 1024, 1, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
      {kF64F64, 512, 256, 1, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
      {kF64F64, 4096, 4096, 1, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
  });
}

TEST(SummedAreaTableMethod, OfColour) {
  expect_choices({
      {kF32F32, 512, 256, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 2048, 1024, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 4096, 2048, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 16384, 8192, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F64, 2048, 1024, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 2048, 1024, 4, 1, kNothing, "look-back, planes of 4", "look-back, planes of 4",
       "look-back, planes of 4"},
      {kF32F32, 2048, 1024, 2, 1, kNothing, "look-back, planes of 2", "look-back, planes of 2",
       "look-back, planes of 2"},
      {kU8U32, 1920, 1080, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kU8U32, 1920, 1080, 4, 1, kNothing, "look-back, planes of 4", "look-back, planes of 4",
       "look-back, planes of 4"},
      {kU8U64, 1920, 1080, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kU16U64, 1920, 1080, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF16F32, 2048, 1024, 3, 1, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF16F32, 2048, 1024, 4, 1, kNothing, "look-back, planes of 4", "look-back, planes of 4",
       "look-back, planes of 4"},
      {kF64F64, 2048, 1024, 3, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
      {kI32I64, 1024, 1024, 3, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
      {kU32U64, 1024, 1024, 4, 1, kNothing, "look-back, strided", "look-back, strided", "look-back, strided"},
  });
}

TEST(SummedAreaTableMethod, OfOtherForms) {
  expect_choices({
      {kF32F32, 1024, 1024, 1, 1, kExclusive, "look-back, planes of 1", "look-back, planes of 1",
       "look-back, planes of 1"},
      {kU8U32, 4096, 4096, 1, 1, kExclusive, "look-back, planes of 1", "look-back, planes of 1",
       "look-back, planes of 1"},
      {kF32F32, 2048, 1024, 3, 1, kExclusive, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 256, 256, 1, 64, kNothing, "look-back, planes of 1", "look-back, planes of 1",
       "look-back, planes of 1"},
      {kU8U32, 640, 480, 3, 16, kNothing, "look-back, planes of 3", "look-back, planes of 3",
       "look-back, planes of 3"},
      {kF32F32, 4096, 4096, 1, 2, kNothing, "look-back, planes of 1", "look-back, planes of 1",
       "look-back, planes of 1"},
      {kF32F64, 1024, 1024, 1, 1, kSquares, "look-back, squares, strided", "look-back, squares, strided",
       "look-back, squares, strided"},
      {kU8U64, 4096, 4096, 3, 1, kSquares, "look-back, squares, strided", "look-back, squares, strided",
       "look-back, squares, strided"},
      {kF64F64, 1024, 1024, 1, 4, kSquares, "look-back, squares, strided", "look-back, squares, strided",
       "look-back, squares, strided"},
      {kF32F32, 1024, 1024, 1, 1, kOffsets, "look-back, offsets, strided", "look-back, offsets, strided",
       "look-back, offsets, strided"},
      {kF16F32, 2048, 1024, 3, 1, kOffsets, "look-back, offsets, strided", "look-back, offsets, strided",
       "look-back, offsets, strided"},
      {kF64F64, 1024, 1024, 1, 1, kExclusive, "look-back, strided", "look-back, strided",
       "look-back, strided"},
  });
}

/// Look-back alone takes scratch memory: a ticket counter, and the words of its tiles.
TEST(SummedAreaTableMethod, TakesTheScratchMemoryOfTheChosenMethod) {
  const BuildShape gray = {.types = kF32F32, .height = 1024, .width = 1024};
  EXPECT_EQ(scratch_bytes(choose(gray, kH200)), 0u);
  // Tiles of 64 x 128; words of 128 columns, 64 rows and 2 corners, in whole 128 bytes.
  EXPECT_EQ(scratch_bytes(choose(gray, kSmall)), 256u + 16 * 8 * 208 * 8);
  const BuildShape colour = {.types = kF32F32, .height = 4096, .width = 4096, .channels = 3};
  // Tiles of 32 x 384 elements; words of 384 columns, and of 32 rows and a corner for each channel.
  EXPECT_EQ(scratch_bytes(choose(colour, kH200)), 256u + 128 * 32 * 496 * 8);
  BuildShape squares = {.types = kF32F64, .height = 480, .width = 640, .squares = true};
  // Tiles of 80 x 128; words of 16 bytes, of 128 columns, 80 rows and 3 corners; of pixels and squares.
  EXPECT_EQ(scratch_bytes(choose(squares, kH200)), 256u + 2 * 6 * 5 * 224 * 16);
  for (const std::int64_t side : {2048, 4096, 8192})
    EXPECT_EQ(scratch_bytes(choose({.types = kU8U32, .height = side, .width = side}, kH200)), 0u) << side;
}

/// Blocks that wait for each other are on the device at once, and cover the image.
struct ExpectResident {
  const BuildShape& shape;
  const DeviceNumbers& device;

  void operator()(const LookBackPlan& plan) const {
    EXPECT_GE(plan.grid.tile_rows * plan.grid.shape.rows(), shape.height);
    EXPECT_GE(plan.grid.tile_columns * plan.grid.shape.columns(), shape.width * plan.channels);
    EXPECT_EQ(plan.planes * plan.channels, shape.planes * shape.channels);
  }
  void operator()(const ResidentPlan& plan) const {
    EXPECT_LE(plan.tiles(), 2 * device.multiprocessors);
    EXPECT_GE(plan.tile_rows * plan.tile.rows(), shape.height);
    EXPECT_GE(plan.tile_columns * plan.tile.columns(), shape.width);
  }
  void operator()(const StripsPlan& plan) const {
    EXPECT_LE(plan.blocks(), device.multiprocessors);
    EXPECT_GE(plan.strips * plan.form.columns, shape.width);
  }
};

TEST(SummedAreaTableMethod, IsThereForEveryShape) {
  for (const DeviceNumbers& device : {kH200, kRtx4090, kSmall}) {
    for_each_element_pair([&]<class Input, class Sum>() {
      for (const std::int64_t height : {1, 63, 64, 129, 1023, 1024, 4097, 70000}) {
        for (const std::int64_t width : {1, 127, 128, 700, 2048, 4096, 9000, 16896, 90000}) {
          for (const std::int64_t channels : {1, 3}) {
            const BuildShape shape = {
                .types = kElementPair<Input, Sum>, .height = height, .width = width, .channels = channels};
            SCOPED_TRACE(text_of(shape));
            std::visit(ExpectResident{shape, device}, choose(shape, device));
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace cumulus::summed_area_table

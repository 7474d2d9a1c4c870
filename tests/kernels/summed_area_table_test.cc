#include "kernels/summed_area_table/summed_area_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/cases/summed_area_table_case.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::build;
using testing::for_every_image;
using ::testing::HasSubstr;
using testing::ImagePattern;
using testing::ImageShape;
using testing::kSummedAreaTableShapes;
using testing::make_image;
using testing::TestImage;

template <class Backend>
class SummedAreaTable : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SummedAreaTable, testing::Backends, testing::BackendNames);

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnEveryImageOfBytes) {
  for_every_image<std::uint8_t>(kSummedAreaTableShapes, [&](const TestImage<std::uint8_t>& image) {
    EXPECT_EQ(verify_summed_area_table(image, build<std::uint32_t>(this->backend(), image).data()), "");
    EXPECT_EQ(verify_summed_area_table(image, build<std::uint64_t>(this->backend(), image).data()), "");
  });
}

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnEveryImageOfFloats) {
  for_every_image<float>(kSummedAreaTableShapes, [&](const TestImage<float>& image) {
    EXPECT_EQ(verify_summed_area_table(image, build<double>(this->backend(), image).data()), "");
    EXPECT_EQ(verify_summed_area_table(image, build<float>(this->backend(), image).data()), "");
  });
}

TYPED_TEST(SummedAreaTable, MatchesTheOracleOnManyTiles) {
  for (const ImageShape shape : {ImageShape{2500, 1701}, ImageShape{1, 300000}, ImageShape{300000, 1}}) {
    const auto bytes = make_image<std::uint8_t>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(bytes, build<std::uint32_t>(this->backend(), bytes).data()), "");
    const auto floats = make_image<float>(shape, 1, 0, ImagePattern::kRandom);
    EXPECT_EQ(verify_summed_area_table(floats, build<double>(this->backend(), floats).data()), "");
    EXPECT_EQ(verify_summed_area_table(floats, build<float>(this->backend(), floats).data()), "");
  }
}

TYPED_TEST(SummedAreaTable, WrapsAroundModulo2To32) {
  const auto image = make_image<std::uint8_t>({4200, 4100}, 1, 0, ImagePattern::kConstant);
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint32_t>(this->backend(), image).data()), "");
  EXPECT_EQ(verify_summed_area_table(image, build<std::uint64_t>(this->backend(), image).data()), "");
}

TYPED_TEST(SummedAreaTable, GivesTheSameBitsEachTime) {
  const auto image = make_image<float>({1000, 2001}, 1, 3, ImagePattern::kCancelling);
  const auto singles = build<float>(this->backend(), image);
  const auto doubles = build<double>(this->backend(), image);
  for (int repeat = 0; repeat < 4; ++repeat) {
    EXPECT_TRUE(build<float>(this->backend(), image) == singles);
    EXPECT_TRUE(build<double>(this->backend(), image) == doubles);
  }
}

TYPED_TEST(SummedAreaTable, SpreadsNanBelowAndToTheRightOnly) {
  auto image = make_image<float>({300, 400}, 1, 0, ImagePattern::kIntegers);
  image.row(130)[150] = std::numeric_limits<float>::quiet_NaN();
  const auto table = build<double>(this->backend(), image);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      ASSERT_EQ(std::isnan(table[static_cast<std::size_t>(y * image.width + x)]), y >= 130 && x >= 150)
          << "row " << y << ", column " << x;
    }
  }
}

TYPED_TEST(SummedAreaTable, RefusesViewsThatDoNotFit) {
  using Job = TableJob<float, double, TypeParam::kSpace>;
  using Image = ImageView<const float, TypeParam::kSpace>;
  using Sums = ImageView<double, TypeParam::kSpace>;
  const auto text_of = [&](const Job& job) -> std::string {
    try {
      build_summed_area_table(this->executor(), job);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(text_of({Image(nullptr, 0, 4), Sums(nullptr, 0, 4)}),
              HasSubstr("the image is 0 x 4 x 1; it must have at least one"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4, 5), Sums(nullptr, 4, 4, 5)}), HasSubstr("1 to 4 channels"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4, 3, 11), Sums(nullptr, 4, 4, 3)}),
              HasSubstr("rows are 11 elements apart"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 5)}),
              HasSubstr("the output is 4 x 5 x 1; the image is 4 x 4 x 1"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4, 1, 8)}),
              HasSubstr("must be dense, 4 apart"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 1, 0, true}),
              HasSubstr("its table has a row and a column more"));
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 0}), HasSubstr("there are 0 images"));
  const float offset = 0;
  EXPECT_THAT(text_of({Image(nullptr, 4, 4), Sums(nullptr, 4, 4), 1, 0, false, nullptr, &offset}),
              HasSubstr("offsets are for float sums"));
}

TYPED_TEST(SummedAreaTable, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  const auto image = make_image<float>({8, 8}, 1, 0, ImagePattern::kRandom);
  EXPECT_THROW(build<double>(this->backend(), image), Interrupted);
}

TEST(SummedAreaTableOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  const auto image = make_image<float>({1000, 801}, 3, 0, ImagePattern::kCancelling);
  const HostImage<const float> view(image.elements.data(), image.height, image.width, image.channels);
  std::vector<std::vector<double>> tables;
  for (const int threads : {1, 2, 5}) {
    CpuExecutor executor(threads);
    std::vector<double>& table = tables.emplace_back(image.elements.size());
    build_summed_area_table(executor, TableJob<float, double, Space::kHost>{
                                          view, {table.data(), image.height, image.width, image.channels}});
  }
  EXPECT_TRUE(tables[0] == tables[1]);
  EXPECT_TRUE(tables[0] == tables[2]);
}

/// A build in progress, to be started again and again.
struct Build {
  virtual ~Build() = default;
  virtual void start() = 0;
  virtual std::string verify() = 0;
};

/// One with all its memory, on an executor of its own.
template <class Input, class Sum>
struct BuildOnCuda final : Build {
  BuildOnCuda(CudaDevice& device, ImageShape shape)
      : image(make_image<Input>(shape, 1, 0, ImagePattern::kRandom)),
        executor(device),
        pixels(executor.allocate(image.elements.size() * sizeof(Input))),
        table(executor.allocate(image.elements.size() * sizeof(Sum))),
        host(image.elements.size()) {
    executor.upload({reinterpret_cast<const std::byte*>(image.elements.data()), pixels.bytes()},
                    {pixels.data(), pixels.bytes()});
    executor.reserve_scratch(build_summed_area_table_scratch_bytes(job()));
  }

  TableJob<Input, Sum, Space::kDevice> job() const {
    return {DeviceImage<const Input>(pixels.as<const Input>(host.size()).data(), image.height, image.width),
            DeviceImage<Sum>(table.as<Sum>(host.size()).data(), image.height, image.width)};
  }
  void start() override {
    executor.reuse_scratch();
    build_summed_area_table(executor, job());
  }
  std::string verify() override {
    executor.download({table.data(), table.bytes()},
                      {reinterpret_cast<std::byte*>(host.data()), table.bytes()});
    executor.synchronize();
    return verify_summed_area_table(image, host.data());
  }

  TestImage<Input> image;
  CudaExecutor executor;
  DeviceMemory pixels;
  DeviceMemory table;
  std::vector<Sum> host;
};

std::unique_ptr<Build> make_build(CudaDevice& device, int number) {
  const ImageShape shape{1 + 37 * number % 1500, 1 + 211 * number % 2300};
  switch (number % 4) {
    case 0:
      return std::make_unique<BuildOnCuda<float, double>>(device, shape);
    case 1:
      return std::make_unique<BuildOnCuda<float, float>>(device, shape);
    case 2:
      return std::make_unique<BuildOnCuda<std::uint8_t, std::uint32_t>>(device, shape);
    default:
      return std::make_unique<BuildOnCuda<std::uint16_t, std::uint64_t>>(device, shape);
  }
}

TEST(SummedAreaTableOnCuda, IsRightWhile64AreBuiltAtOnce) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaDevice device(0);
  std::vector<std::unique_ptr<Build>> builds;
  for (int i = 0; i < 64; ++i) builds.push_back(make_build(device, i));
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const auto& build : builds) build->start();
  }
  for (const auto& build : builds) EXPECT_EQ(build->verify(), "");
}

TEST(SummedAreaTableOnCuda, IsRightBeyondTwoToThe31Bytes) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaDevice device(0);
  constexpr ImageShape kShape{29000, 20001};  // 2.3 GB of floats
  if (device.free_bytes() < std::size_t{6} << 30) GTEST_SKIP() << "takes 5 GB of the device's memory";
  TestImage<float> image(kShape, 1);
  for (std::size_t i = 0; i < image.elements.size(); ++i)
    image.elements[i] = static_cast<float>(i * 2654435761U % 1024) * 0x1p-10f;
  CudaExecutor executor(device);
  const DeviceMemory pixels = executor.allocate(image.elements.size() * sizeof(float));
  const DeviceMemory table = executor.allocate(pixels.bytes());
  executor.upload({reinterpret_cast<const std::byte*>(image.elements.data()), pixels.bytes()},
                  {pixels.data(), pixels.bytes()});
  const TableJob<float, float, Space::kDevice> job{
      DeviceImage<const float>(pixels.as<const float>(0).data(), kShape.height, kShape.width),
      DeviceImage<float>(table.as<float>(0).data(), kShape.height, kShape.width)};
  executor.reserve_scratch(build_summed_area_table_scratch_bytes(job));
  build_summed_area_table(executor, job);
  std::vector<float> host(image.elements.size());
  executor.download({table.data(), table.bytes()},
                    {reinterpret_cast<std::byte*>(host.data()), table.bytes()});
  executor.synchronize();
  EXPECT_EQ(verify_summed_area_table(image, host.data()), "");
}

TEST(SummedAreaTableVerifier, RefusesOneWrongInteger) {
  testing::CpuBackend backend;
  const auto image = make_image<std::uint8_t>({40, 50}, 3, 0, ImagePattern::kRandom);
  auto table = build<std::uint32_t>(backend, image);
  table[4321] += 1;
  EXPECT_THAT(verify_summed_area_table(image, table.data()), HasSubstr("row 28, element 121 of the row"));
}

TEST(SummedAreaTableVerifier, RefusesOneFloatOffByOneBitWhereSumsAreExact) {
  testing::CpuBackend backend;
  const auto image = make_image<float>({40, 50}, 1, 0, ImagePattern::kIntegers);
  auto table = build<float>(backend, image);
  table[1999] = std::nextafter(table[1999], 0.0f);
  EXPECT_THAT(verify_summed_area_table(image, table.data()), HasSubstr("row 39, element 49 of the row"));
}

TEST(SummedAreaTableVerifier, RefusesAFloatBeyondTheBoundAndNan) {
  testing::CpuBackend backend;
  const auto image = make_image<float>({40, 50}, 1, 0, ImagePattern::kRandom);
  const auto table = build<float>(backend, image);
  auto wrong = table;
  wrong[1999] *= 1 + 2 * 90 * 0x1p-24f;
  EXPECT_NE(verify_summed_area_table(image, wrong.data()), "");
  wrong = table;
  wrong[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(verify_summed_area_table(image, wrong.data()), "");
}

}  // namespace
}  // namespace cumulus

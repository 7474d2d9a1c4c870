// Many tables at once, and large ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/summed_area_table/queries.h"
#include "tests/cases/summed_area_table_boxes.h"
#include "tests/kernels/summed_area_table_building.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

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
    executor.reserve_scratch(build_summed_area_table_scratch_bytes(job(), executor.numbers()));
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

/// One on an executor of its own, of two threads.
template <class Input, class Sum>
struct BuildOnCpu final : Build {
  explicit BuildOnCpu(ImageShape shape)
      : image(make_image<Input>(shape, 1, 0, ImagePattern::kRandom)), table(image.elements.size()) {}

  void start() override {
    std::memset(table.data(), 0xA5, table.size() * sizeof(Sum));
    build_summed_area_table(
        executor, TableJob<Input, Sum, Space::kHost>{{image.elements.data(), image.height, image.width},
                                                     {table.data(), image.height, image.width}});
  }
  std::string verify() override { return verify_summed_area_table(image, table.data()); }

  TestImage<Input> image;
  CpuExecutor executor{2};
  std::vector<Sum> table;
};

constexpr int kBuildsAtOnce = 64;

/// Small, in tiles, or as large as the strips that an H200 is busy with.
ImageShape mixed_shape(int number) {
  const bool large = number % 16 == 1 || number % 16 == 2;
  return large ? ImageShape{3072 + number, 3840}
               : ImageShape{1 + 37 * number % 1500, 1 + 211 * number % 2300};
}

/// A few tiles at most: what a sanitizer gets through.
ImageShape small_shape(int number) { return {1 + 37 * number % 190, 1 + 211 * number % 400}; }

/// Gives make(Input*, Sum*, shape) the types of build `number`.
template <class Make>
std::unique_ptr<Build> make_build(int number, ImageShape shape, const Make& make) {
  switch (number % 4) {
    case 0:
      return make(static_cast<float*>(nullptr), static_cast<double*>(nullptr), shape);
    case 1:
      return make(static_cast<float*>(nullptr), static_cast<float*>(nullptr), shape);
    case 2:
      return make(static_cast<std::uint8_t*>(nullptr), static_cast<std::uint32_t*>(nullptr), shape);
    default:
      return make(static_cast<std::uint16_t*>(nullptr), static_cast<std::uint64_t*>(nullptr), shape);
  }
}

using SummedAreaTableOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

using TablesOfSmallImagesOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

/// Each with its own stream, three times over.
void expect_right_at_once(CudaDevice& device, ImageShape (*shape_of)(int number)) {
  const auto make = [&]<class Input, class Sum>(Input*, Sum*, ImageShape shape) -> std::unique_ptr<Build> {
    return std::make_unique<BuildOnCuda<Input, Sum>>(device, shape);
  };
  std::vector<std::unique_ptr<Build>> builds;
  for (int i = 0; i < kBuildsAtOnce; ++i) builds.push_back(make_build(i, shape_of(i), make));
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const auto& build : builds) build->start();
  }
  for (const auto& build : builds) EXPECT_EQ(build->verify(), "");
}

TEST_F(SummedAreaTableOnCuda, IsRightWhile64AreBuiltAtOnce) {
  expect_right_at_once(executor().device(), mixed_shape);
}

TEST_F(TablesOfSmallImagesOnCuda, AreRightWhile64AreBuiltAtOnce) {
  expect_right_at_once(executor().device(), small_shape);
}

/// Tables leave words behind that the next one, of other extents and another type, must not take for
/// its own.
TEST_F(SummedAreaTableOnCuda, IsRightAfterOtherTables) {
  const ImageShape shapes[] = {{1024, 1024}, {65, 130},    {900, 1100}, {2048, 2048},
                               {1, 16000},   {1300, 1700}, {3072, 3840}};
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto seed = static_cast<std::uint32_t>(repeat + 1);
    for (const ImageShape& shape : shapes) {
      const auto floats = make_image<float>(shape, 1, repeat, ImagePattern::kRandom, seed);
      const auto bytes = make_image<std::uint8_t>(shape, 1, repeat, ImagePattern::kRandom, seed);
      EXPECT_EQ(verify_summed_area_table(floats, testing::build<float>(backend(), floats).data()), "");
      EXPECT_EQ(verify_summed_area_table(bytes, testing::build<std::uint64_t>(backend(), bytes).data()), "");
      EXPECT_EQ(verify_summed_area_table(bytes, testing::build<std::uint32_t>(backend(), bytes).data()), "");
      EXPECT_EQ(verify_summed_area_table(floats, testing::build<double>(backend(), floats).data()), "");
    }
  }
}

TEST(SummedAreaTableOnTheCpu, IsRightWhile64AreBuiltAtOnce) {
  const auto make = []<class Input, class Sum>(Input*, Sum*, ImageShape shape) -> std::unique_ptr<Build> {
    return std::make_unique<BuildOnCpu<Input, Sum>>(shape);
  };
  std::vector<std::unique_ptr<Build>> builds;
  for (int i = 0; i < kBuildsAtOnce; ++i) builds.push_back(make_build(i, mixed_shape(i), make));
  {
    std::vector<std::jthread> callers;
    for (const auto& build : builds) callers.emplace_back([&build] { build->start(); });
  }
  for (const auto& build : builds) EXPECT_EQ(build->verify(), "");
}

// 2.3 GB of floats. The second is built in strips on an H200.
constexpr ImageShape kBeyondTwoToThe31Bytes[] = {{29000, 20001}, {35000, 16384}};

TestImage<float> make_large_image(ImageShape shape) {
  TestImage<float> image(shape, 1);
  for (std::size_t i = 0; i < image.elements.size(); ++i)
    image.elements[i] = static_cast<float>(i * 2654435761U % 1024) * 0x1p-10f;
  return image;
}

TEST(SlowSummedAreaTableOnTheCpu, IsRightBeyondTwoToThe31Bytes) {
  const TestImage<float> image = make_large_image(kBeyondTwoToThe31Bytes[0]);
  std::vector<float> table(image.elements.size());
  CpuExecutor executor(2);
  build_summed_area_table(
      executor, TableJob<float, float, Space::kHost>{{image.elements.data(), image.height, image.width},
                                                     {table.data(), image.height, image.width}});
  EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
}

/// Takes 11 GB of memory.
TEST(SlowSummedAreaTableOnTheCpu, IsRightBeyondTwoToThe31Elements) {
  constexpr ImageShape kShape{50'021, 43'003};
  const auto free_bytes =
      static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (free_bytes < 16e9) GTEST_SKIP() << "less than 16 GB of memory are free";
  TestImage<std::uint8_t> image(kShape, 1);
  for (std::size_t i = 0; i < image.elements.size(); ++i)
    image.elements[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
  const auto table = std::make_unique_for_overwrite<std::uint32_t[]>(image.elements.size());
  CpuExecutor executor(2);
  build_summed_area_table(executor, TableJob<std::uint8_t, std::uint32_t, Space::kHost>{
                                        {image.elements.data(), image.height, image.width},
                                        {table.get(), image.height, image.width}});
  EXPECT_EQ(verify_summed_area_table(image, table.get()), "");

  const std::array<std::int32_t, 4> last = {50'000, 42'900, 50'021, 43'003};
  const Rectangle asked{last[0], last[1], last[2], last[3]};
  std::uint32_t sum = 0;
  sum_rectangles(
      executor, TableView<std::uint32_t, Space::kHost>{{image.height, image.width, 1, false}, table.get()},
      HostSpan<const Rectangle>(&asked, 1), RectangleResults<std::uint32_t, Space::kHost>{&sum}, nullptr);
  EXPECT_EQ(static_cast<long double>(sum), testing::naive_rectangle(image, last, 0).sum);
}

/// Takes 5 GB of the device's memory.
TEST_F(SummedAreaTableOnCuda, SlowIsRightBeyondTwoToThe31Bytes) {
  for (const ImageShape shape : kBeyondTwoToThe31Bytes) {
    const TestImage<float> image = make_large_image(shape);
    EXPECT_EQ(verify_summed_area_table(image, testing::build<float>(backend(), image).data()), "");
  }
}

}  // namespace
}  // namespace cumulus

#include "kernels/summed_area_table/summed_area_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/cases/summed_area_table_case.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using ::testing::HasSubstr;
using testing::image_patterns;
using testing::ImagePattern;
using testing::ImageShape;
using testing::kSummedAreaTableShapes;
using testing::make_image;
using testing::TestImage;

template <class Backend, class Input>
ImageView<const Input, Backend::kSpace> view_of(const TestImage<Input>& image,
                                                Span<const Input, Backend::kSpace> at) {
  return {at.data(), image.height, image.width, image.channels, image.row_stride};
}

template <class Sum>
struct Tables {
  std::vector<Sum> sums;
  std::vector<Sum> squares;
};

/// Builds the tables of a job (whose image and outputs are filled in here) in fresh, poisoned memory; checks
/// that exactly the stated scratch was taken.
template <class Backend, class Input, class Sum>
Tables<Sum> build_job(Backend& backend, const std::vector<Input>& elements,
                      TableJob<Input, Sum, Backend::kSpace> job, bool squares = false) {
  BackendArray<Backend, Input> pixels(backend, elements);
  const std::int64_t border = job.exclusive ? 1 : 0;
  job.image.data = pixels.const_span().data();
  job.sums = {nullptr, job.image.height + border, job.image.width + border, job.image.channels};
  const auto count = static_cast<std::size_t>(job.planes * job.sums.elements());
  BackendArray<Backend, Sum> sums(backend, count);
  BackendArray<Backend, Sum> sums_of_squares(backend, squares ? count : 0);
  job.sums.data = sums.span().data();
  if (squares) job.squares = sums_of_squares.span().data();
  const std::size_t scratch_bytes = build_summed_area_table_scratch_bytes(job);
  backend.executor().reserve_scratch(scratch_bytes);
  build_summed_area_table(backend.executor(), job);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return {sums.to_host(), sums_of_squares.to_host()};
}

template <class Sum, class Backend, class Input>
TableJob<Input, Sum, Backend::kSpace> job_of(const Backend& /*backend*/, const TestImage<Input>& image) {
  TableJob<Input, Sum, Backend::kSpace> job;
  job.image = {nullptr, image.height, image.width, image.channels, image.row_stride};
  return job;
}

/// The plain inclusive table.
template <class Sum, class Backend, class Input>
std::vector<Sum> build(Backend& backend, const TestImage<Input>& image) {
  return build_job(backend, image.elements, job_of<Sum>(backend, image)).sums;
}

std::string describe(ImageShape shape, std::int64_t channels, std::int64_t padding, ImagePattern pattern) {
  return std::string(name_of(pattern)) + ", " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width) + " x " + std::to_string(channels) + ", rows padded by " +
         std::to_string(padding);
}

/// Calls check(image) for every shape, number of channels, padding and pattern.
template <class Input, class Check>
void for_every_image(const std::vector<ImageShape>& shapes, const Check& check) {
  for (const ImageShape shape : shapes) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const int padding : {0, channels == 1 ? 16 : 5}) {
        for (const ImagePattern pattern : image_patterns<Input>()) {
          SCOPED_TRACE(describe(shape, channels, padding, pattern));
          check(make_image<Input>(shape, channels, padding, pattern));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

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

/// Every form of table that a pair of types allows, of images of a few tiles.
template <class Sum, class Backend, class Input>
void expect_every_form(Backend& backend, const TestImage<Input>& image) {
  for (const bool exclusive : {false, true}) {
    SCOPED_TRACE(exclusive ? "exclusive" : "inclusive");
    auto job = job_of<Sum>(backend, image);
    job.exclusive = exclusive;
    EXPECT_EQ(verify_summed_area_table(image, build_job(backend, image.elements, job).sums.data(), exclusive),
              "");
    if constexpr (kSumsSquares<Input, Sum>) {
      const Tables<Sum> tables = build_job(backend, image.elements, job, true);
      EXPECT_EQ(verify_summed_area_table(image, tables.sums.data(), exclusive), "");
      EXPECT_EQ(verify_summed_area_table(squares_of(image), tables.squares.data(), exclusive), "");
    }
  }
}

const std::vector<ImageShape> kFewTiles = {{1, 1}, {3, 5}, {129, 127}, {97, 300}};

/// 44 of 45 images have interleaved channels or padded rows or both.
template <class Input, class Sum, class Backend>
void expect_every_form_of(Backend& backend) {
  for (const ImageShape shape : kFewTiles) {
    for (const int channels : {1, 3, 4}) {
      for (const int padding : {0, 5}) {
        for (const ImagePattern pattern : image_patterns<Input>()) {
          SCOPED_TRACE(describe(shape, channels, padding, pattern));
          expect_every_form<Sum>(backend, make_image<Input>(shape, channels, padding, pattern));
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TYPED_TEST(SummedAreaTable, OffersEveryFormOfBytesAndShorts) {
  expect_every_form_of<std::uint8_t, std::uint32_t>(this->backend());
  expect_every_form_of<std::uint8_t, std::uint64_t>(this->backend());
  expect_every_form_of<std::uint16_t, std::uint32_t>(this->backend());
  expect_every_form_of<std::uint16_t, std::uint64_t>(this->backend());
}

TYPED_TEST(SummedAreaTable, OffersEveryFormOfWords) {
  expect_every_form_of<std::uint32_t, std::uint64_t>(this->backend());
  expect_every_form_of<std::int32_t, std::int64_t>(this->backend());
}

TYPED_TEST(SummedAreaTable, OffersEveryFormOfHalves) {
  expect_every_form_of<Float16, float>(this->backend());
  expect_every_form_of<Float16, double>(this->backend());
}

TYPED_TEST(SummedAreaTable, OffersEveryFormOfFloatsAndDoubles) {
  expect_every_form_of<float, float>(this->backend());
  expect_every_form_of<float, double>(this->backend());
  expect_every_form_of<double, double>(this->backend());
}

TYPED_TEST(SummedAreaTable, SumsSignedPixelsOfBothSigns) {
  auto image = make_image<std::int32_t>({70, 200}, 1, 0, ImagePattern::kRandom);
  for (std::size_t i = 0; i < image.elements.size(); i += 2) image.elements[i] = ~image.elements[i];
  image.elements[0] = std::numeric_limits<std::int32_t>::min();
  const auto table = build<std::int64_t>(this->backend(), image);
  EXPECT_EQ(verify_summed_area_table(image, table.data()), "");
  EXPECT_LT(table[0], 0);
}

/// A stack of images, each with rows of its own below it that must not be summed.
template <class Input, class Sum, class Backend>
void expect_planes(Backend& backend, ImageShape shape, int channels, int planes) {
  constexpr std::int64_t kGap = 3;
  const auto stack =
      make_image<Input>({(shape.height + kGap) * planes, shape.width}, channels, 0, ImagePattern::kRandom);
  auto job = job_of<Sum>(backend, stack);
  job.image.height = shape.height;
  job.planes = planes;
  job.plane_stride = (shape.height + kGap) * stack.row_stride;
  for (const bool exclusive : {false, true}) {
    job.exclusive = exclusive;
    const auto tables = build_job(backend, stack.elements, job, kSumsSquares<Input, Sum>);
    const std::int64_t border = exclusive ? 1 : 0;
    const std::int64_t table = (shape.height + border) * (shape.width + border) * channels;
    for (int plane = 0; plane < planes; ++plane) {
      TestImage<Input> image(shape, channels);
      std::copy_n(stack.row(plane * (shape.height + kGap)), image.elements.size(), image.elements.begin());
      SCOPED_TRACE(plane);
      EXPECT_EQ(verify_summed_area_table(image, tables.sums.data() + plane * table, exclusive), "");
      if constexpr (kSumsSquares<Input, Sum>) {
        EXPECT_EQ(
            verify_summed_area_table(squares_of(image), tables.squares.data() + plane * table, exclusive),
            "");
      }
    }
  }
}

TYPED_TEST(SummedAreaTable, SumsEachPlaneByItself) {
  expect_planes<float, float>(this->backend(), {64, 128}, 1, 5);
  expect_planes<float, double>(this->backend(), {65, 131}, 3, 4);
  expect_planes<std::uint8_t, std::uint32_t>(this->backend(), {200, 150}, 2, 3);
  expect_planes<std::uint16_t, std::uint64_t>(this->backend(), {30, 300}, 3, 3);
  expect_planes<Float16, float>(this->backend(), {1, 1}, 4, 700);
}

/// Builds the table of a stack of two images less their means; checks the means too.
template <class Input, class Backend>
void expect_centered(Backend& backend, ImageShape shape, int channels) {
  const auto stack = make_image<Input>({2 * shape.height, shape.width}, channels, 3, ImagePattern::kRandom);
  auto job = job_of<float>(backend, stack);
  job.image.height = shape.height;
  job.planes = 2;
  job.plane_stride = shape.height * stack.row_stride;
  BackendArray<Backend, Input> pixels(backend, stack.elements);
  job.image.data = pixels.const_span().data();
  BackendArray<Backend, float> means(backend, static_cast<std::size_t>(2 * channels));
  backend.executor().reserve_scratch(average_image_scratch_bytes(job));
  average_image(backend.executor(), job, means.span());
  const std::vector<float> offsets = means.to_host();
  job.offsets = means.const_span().data();
  const auto tables = build_job(backend, stack.elements, job);
  for (int plane = 0; plane < 2; ++plane) {
    TestImage<Input> image(shape, channels);
    for (std::int64_t y = 0; y < shape.height; ++y)
      std::copy_n(stack.row(plane * shape.height + y), image.row_elements(), image.row(y));
    const float* mean = offsets.data() + plane * channels;
    for (int channel = 0; channel < channels; ++channel) {
      const auto all = testing::naive_rectangle(
          image, {0, 0, static_cast<std::int32_t>(shape.height), static_cast<std::int32_t>(shape.width)},
          channel);
      EXPECT_NEAR(mean[channel], static_cast<double>(all.sum) / static_cast<double>(all.pixels), 0x1p-24);
    }
    const auto centered = testing::map_image<float>(
        image, [&](Input pixel, std::int64_t channel) { return static_cast<float>(pixel) - mean[channel]; });
    EXPECT_EQ(
        verify_summed_area_table(centered, tables.sums.data() + plane * image.height * image.row_elements()),
        "");
  }
}

TYPED_TEST(SummedAreaTable, SubtractsTheMeanFirst) {
  for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{65, 129}, ImageShape{130, 300}}) {
    expect_centered<float>(this->backend(), shape, 1);
    expect_centered<float>(this->backend(), shape, 3);
    expect_centered<Float16>(this->backend(), shape, 2);
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

/// Small enough for compute-sanitizer's racecheck, under which a block that waits for another is slow:
/// --gtest_filter
/// '*SmallImages*' selects them.
template <class Backend>
class SummedAreaTableOfSmallImages : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SummedAreaTableOfSmallImages, testing::Backends, testing::BackendNames);

TYPED_TEST(SummedAreaTableOfSmallImages, HasEveryForm) {
  const auto check = [&]<class Input, class Sum>(Input*, Sum*) {
    for (const ImageShape shape : {ImageShape{1, 1}, ImageShape{130, 130}}) {
      for (const int channels : {1, 3})
        expect_every_form<Sum>(this->backend(), make_image<Input>(shape, channels, 0, ImagePattern::kRandom));
    }
  };
  const auto pointer = []<class T>(std::type_identity<T>) { return static_cast<T*>(nullptr); };
  check(pointer(std::type_identity<std::uint8_t>()), pointer(std::type_identity<std::uint32_t>()));
  check(pointer(std::type_identity<std::uint16_t>()), pointer(std::type_identity<std::uint64_t>()));
  check(pointer(std::type_identity<float>()), pointer(std::type_identity<float>()));
  check(pointer(std::type_identity<float>()), pointer(std::type_identity<double>()));
}

TYPED_TEST(SummedAreaTableOfSmallImages, HasPlanesAndMeans) {
  expect_planes<float, float>(this->backend(), {64, 128}, 1, 3);
  expect_centered<float>(this->backend(), {65, 129}, 3);
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

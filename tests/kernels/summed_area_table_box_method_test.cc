// Whether a box filter slides or builds a table first: of the job alone, the same on every GPU.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/summed_area_table/queries.h"
#include "tests/support/gpus.h"

namespace cumulus::summed_area_table {
namespace {

enum class Pixels { kBytes, kShorts, kHalves, kFloats };

struct BoxCase {
  Pixels pixels;
  std::int64_t height, width, channels;
  std::int64_t radius_y, radius_x;
  bool with_radii, with_deviations;
  bool slides_on_gpu, slides_on_cpu;

  std::string name() const {
    return std::to_string(height) + " x " + std::to_string(width) + " x " + std::to_string(channels) +
           ", radii " + std::to_string(radius_y) + " and " + std::to_string(radius_x) + ", pixels " +
           std::to_string(static_cast<int>(pixels)) + (with_radii ? ", a map of radii" : "") +
           (with_deviations ? ", deviations" : "");
  }
};

template <class Input, Space S>
BoxFilterJob<Input, S> job_of(const BoxCase& one) {
  static float numbers[1];
  BoxFilterJob<Input, S> job;
  job.image = ImageView<const Input, S>(nullptr, one.height, one.width, one.channels);
  job.means = ImageView<float, S>(nullptr, one.height, one.width, one.channels);
  job.box = {.radius_y = one.radius_y, .radius_x = one.radius_x};
  if (one.with_radii) job.radii = numbers;
  if (one.with_deviations) job.deviations = numbers;
  return job;
}

template <class Input>
void expect_choice(const BoxCase& one) {
  const auto on_gpu = job_of<Input, Space::kDevice>(one);
  const auto on_cpu = job_of<Input, Space::kHost>(one);
  EXPECT_EQ(takes_sliding_boxes(on_gpu), one.slides_on_gpu);
  EXPECT_EQ(takes_sliding_boxes(on_cpu), one.slides_on_cpu);
  // A table and what building it takes, or nothing.
  EXPECT_EQ(filter_box_scratch_bytes(on_gpu, testing::kH200) == 0, one.slides_on_gpu);
  EXPECT_EQ(filter_box_scratch_bytes(on_gpu, testing::kRtx4090) == 0, one.slides_on_gpu);
  EXPECT_EQ(filter_box_scratch_bytes(on_cpu, {}) == 0, one.slides_on_cpu);
}

TEST(BoxFilterMethod, IsTheOneOfTheTable) {
  constexpr auto kBytes = Pixels::kBytes;
  constexpr auto kShorts = Pixels::kShorts;
  constexpr auto kHalves = Pixels::kHalves;
  constexpr auto kFloats = Pixels::kFloats;
  // pixels, height, width, channels, radii along y and x, a map, deviations, slides on a GPU, on a CPU
  const BoxCase cases[] = {
      {kFloats, 1, 1, 1, 0, 0, false, false, false, true},
      {kFloats, 256, 512, 1, 1, 1, false, false, true, true},
      {kFloats, 256, 511, 1, 1, 1, false, false, false, true},
      {kFloats, 256, 512, 1, 2, 2, false, false, false, true},
      {kFloats, 512, 1024, 3, 8, 8, false, false, true, true},
      {kFloats, 512, 1024, 3, 13, 13, false, false, false, true},
      {kFloats, 1080, 1920, 3, 4, 4, false, false, true, true},
      {kFloats, 1080, 1920, 3, 32, 32, false, false, true, true},
      {kFloats, 1080, 1920, 3, 48, 48, false, false, false, true},
      {kFloats, 1080, 1920, 1, 64, 64, false, false, false, true},
      {kFloats, 1024, 2048, 3, 32, 32, false, false, true, true},
      {kFloats, 4096, 8192, 3, 64, 64, false, false, true, true},
      {kFloats, 4096, 8192, 3, 65, 64, false, false, true, false},
      {kFloats, 4096, 8192, 3, 256, 256, false, false, true, false},
      {kFloats, 4096, 8192, 3, 257, 256, false, false, false, false},
      {kFloats, 4096, 8192, 3, 8, 257, false, false, false, false},
      {kFloats, 4096, 8192, 1, 8, 512, false, false, true, false},
      {kFloats, 4096, 8192, 1, 8, 513, false, false, false, false},
      {kFloats, 4096, 8192, 4, 8, 128, false, false, true, true},
      {kFloats, 4096, 8192, 4, 8, 129, false, false, false, true},
      {kFloats, 4096, 8192, 3, 8, 8, true, false, false, false},
      {kFloats, 4096, 8192, 3, 8, 8, false, true, false, false},
      {kHalves, 1080, 1920, 4, 32, 32, false, false, true, true},
      {kBytes, 1080, 1920, 3, 8, 8, false, false, true, true},
      {kBytes, 4096, 8192, 1, 200, 200, false, false, true, false},
      {kShorts, 4096, 8192, 1, 127, 128, false, false, true, false},
      {kShorts, 4096, 8192, 1, 128, 128, false, false, false, false},
      {kFloats, std::int64_t{1} << 21, 64, 1, 1, 1, false, false, true, true},
      {kFloats, (std::int64_t{1} << 21) + 1, 64, 1, 1, 1, false, false, false, true},
      {kFloats, 1, std::int64_t{1} << 30, 1, 1, 1, false, false, true, true},
      {kFloats, 1, (std::int64_t{1} << 30) + 1, 1, 1, 1, false, false, false, false},
  };
  for (const BoxCase& one : cases) {
    SCOPED_TRACE(one.name());
    if (one.pixels == kBytes) expect_choice<std::uint8_t>(one);
    if (one.pixels == kShorts) expect_choice<std::uint16_t>(one);
    if (one.pixels == kHalves) expect_choice<Float16>(one);
    if (one.pixels == kFloats) expect_choice<float>(one);
  }
}

/// So that a caller searches the image only where some are.
TEST(BoxFiltersOnTheCpu, SeeEachPixelThatIsNotFinite) {
  CpuExecutor executor;
  constexpr std::int64_t kHeight = 13, kWidth = 17, kChannels = 2;
  std::vector<float> pixels(kHeight * kWidth * kChannels, 0.5F);
  std::vector<float> means(pixels.size());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kWrong[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};
  BoxFilterJob<float, Space::kHost> job;
  job.image = {pixels.data(), kHeight, kWidth, kChannels};
  job.means = {means.data(), kHeight, kWidth, kChannels};
  for (const Boundary boundary : {Boundary::kExact, Boundary::kZero, Boundary::kClamp, Boundary::kRepeat}) {
    job.box = {.radius_y = 3, .radius_x = 2, .boundary_y = boundary, .boundary_x = boundary};
    ASSERT_TRUE(takes_sliding_boxes(job));
    EXPECT_TRUE(filter_box(executor, job));
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = kWrong[i % 3];
      EXPECT_FALSE(filter_box(executor, job)) << "pixel " << i;
      pixels[i] = 0.5F;
    }
  }
}

}  // namespace
}  // namespace cumulus::summed_area_table
